-- The tables of connector/informix_emulator/shop/database.py, with keys.
CREATE TABLE IF NOT EXISTS informix.customers (
    customer_num SERIAL,
    fname CHAR(15),
    lname CHAR(15),
    company VARCHAR(40,0),
    city NVARCHAR(30,0),
    phone CHAR(18),
    credit_limit MONEY(10,2),
    since DATE,
    PRIMARY KEY (customer_num)
);

CREATE TABLE IF NOT EXISTS informix.orders (
    order_num SERIAL,
    customer_num INTEGER,
    placed_at DATETIME YEAR TO SECOND,
    ship_date DATE,
    ship_instruct VARCHAR(40,0),
    ship_weight DECIMAL(8,2),
    ship_charge MONEY(6,2),
    total DECIMAL(12,2),
    PRIMARY KEY (order_num)
);

CREATE TABLE IF NOT EXISTS informix.items (
    order_num INTEGER,
    item_num SMALLINT,
    stock_num SMALLINT,
    manu_code CHAR(3),
    quantity SMALLINT,
    unit_price MONEY(8,2),
    total_price DECIMAL(10,2),
    PRIMARY KEY (order_num, item_num)
);

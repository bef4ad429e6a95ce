BEGIN WORK;
INSERT INTO informix.customers (customer_num, fname, lname, company, city, phone, credit_limit, since)
    VALUES (101, 'Ludwig', 'Pauli', 'All Sports Supplies', 'Sunnyvale', '408-555-8075', 25000.00, MDY(1, 15, 2024));
INSERT INTO informix.customers (customer_num, fname, lname, company, city, phone, credit_limit, since)
    VALUES (102, 'Zoë', 'Müller', 'Phoenix Läufer', 'Zürich', '415-555-1389', 7500.00, MDY(3, 2, 2024));
INSERT INTO informix.customers (customer_num, fname, lname, company, city, phone, credit_limit, since)
    VALUES (103, 'Łukasz', 'Higgins', 'Play Ball!', 'Kraków', '415-555-0011', 250.00, MDY(6, 30, 2024));
INSERT INTO informix.customers (customer_num, fname, lname, company, city, phone, credit_limit, since)
    VALUES (104, 'Inês', 'García', NULL, 'São Paulo', '650-555-9091', 60250.00, MDY(11, 9, 2024));
INSERT INTO informix.customers (customer_num, fname, lname, company, city, phone, credit_limit, since)
    VALUES (105, 'Åsa', 'Nørgaard', 'Šport Kranj', 'Århus', '303-555-7070', 99750.00, MDY(2, 28, 2025));
INSERT INTO informix.orders (order_num, customer_num, placed_at, ship_instruct, total)
    VALUES (1001, 101, '2025-03-01 09:30:00', 'express', 557.00);
INSERT INTO informix.items (order_num, item_num, stock_num, manu_code, quantity, unit_price, total_price)
    VALUES (1001, 1, 1, 'HRO', 2, 250.00, 500.00);
INSERT INTO informix.items (order_num, item_num, stock_num, manu_code, quantity, unit_price, total_price)
    VALUES (1001, 2, 5, 'NRG', 2, 28.50, 57.00);
COMMIT WORK;

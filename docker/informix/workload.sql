-- One call is one transaction: an order with two items, an older order shipped, an old one deleted.
CREATE PROCEDURE IF NOT EXISTS informix.shop_order()
    DEFINE buyer INTEGER;
    DEFINE placed INTEGER;

    BEGIN WORK;
    SELECT MOD(MAX(order_num), 5) + 101 INTO buyer FROM informix.orders;
    INSERT INTO informix.orders (order_num, customer_num, placed_at, ship_instruct, total)
        VALUES (0, buyer, CURRENT YEAR TO SECOND, 'ring bell twice', 0);
    LET placed = DBINFO('sqlca.sqlerrd1');
    INSERT INTO informix.items (order_num, item_num, stock_num, manu_code, quantity, unit_price, total_price)
        VALUES (placed, 1, 1, 'HRO', MOD(placed, 9) + 1, 250.00, (MOD(placed, 9) + 1) * 250.00);
    INSERT INTO informix.items (order_num, item_num, stock_num, manu_code, quantity, unit_price, total_price)
        VALUES (placed, 2, 5, 'NRG', 2, 28.50, 57.00);
    UPDATE informix.orders
        SET total = (SELECT SUM(total_price) FROM informix.items WHERE order_num = placed)
        WHERE order_num = placed;
    UPDATE informix.orders
        SET ship_date = TODAY, ship_weight = 12.50, ship_charge = 7.90
        WHERE order_num = placed - 3;
    DELETE FROM informix.items WHERE order_num = placed - 500;
    DELETE FROM informix.orders WHERE order_num = placed - 500;
    COMMIT WORK;
END PROCEDURE;

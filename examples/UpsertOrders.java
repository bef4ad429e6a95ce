import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/**
 * Keeps a table of another database equal to `orders`, change by change: see real_time_foreach.py.
 *
 * <p>In real-time mode a change can come twice. So each row of the target has the version of its last
 * change, deleted rows too, and a change that is not newer does nothing.
 *
 * <p>UPDATE orders SET order_num = order_num + 1 gives an order the number that another one still has.
 * So each row counts the orders that have its number: 2 in between, and 1 at the end of the transaction.
 * The count needs the orders that are there before: load them before their numbers change.
 */
public final class UpsertOrders extends ForeachWriter<Row> {
  private static final String NEWER =
      "UPDATE orders SET city = CASE WHEN ? > 0 THEN ? ELSE city END,"
          + " orders = CASE WHEN orders + ? < 0 THEN 0 ELSE orders + ? END, version = ?, ordinal = ?"
          + " WHERE order_num = ? AND (version < ? OR version = ? AND ordinal < ?)";
  private static final String NEW =
      "INSERT INTO orders (city, orders, version, ordinal, order_num) VALUES (?, ?, ?, ?, ?)";
  private static final String DUPLICATE_KEY = "23505";

  private final String url;
  private transient Connection target;
  private transient PreparedStatement update;
  private transient PreparedStatement insert;

  public UpsertOrders(String url) {
    this.url = url;
  }

  @Override
  public boolean open(long partition, long batch) {
    try {
      target = DriverManager.getConnection(url);
      update = target.prepareStatement(NEWER);
      insert = target.prepareStatement(NEW);
      return true;
    } catch (SQLException reason) {
      throw new IllegalStateException(reason);
    }
  }

  @Override
  public void process(Row change) {
    String kind = change.getAs("_change_type");
    int more = kind.equals("delete") || kind.equals("update_preimage") ? -1 : 1;
    String city = change.getAs("city");
    int order = change.getAs("order_num");
    long version = change.getAs("_commit_version");
    int ordinal = change.getAs("_change_ordinal");
    try {
      set(update, more, city, more, more, version, ordinal, order, version, version, ordinal);
      if (update.executeUpdate() == 0) {
        set(insert, city, Math.max(more, 0), version, ordinal, order);
        insert.executeUpdate();
      }
    } catch (SQLException reason) {
      if (!DUPLICATE_KEY.equals(reason.getSQLState())) { // the target has a newer change
        throw new IllegalStateException(reason);
      }
    }
  }

  private static void set(PreparedStatement statement, Object... values) throws SQLException {
    for (int place = 0; place < values.length; place++) {
      statement.setObject(place + 1, values[place]);
    }
  }

  @Override
  public void close(Throwable reason) {
    try {
      if (target != null) {
        target.close();
      }
    } catch (SQLException broken) {
      throw new IllegalStateException(broken);
    }
  }
}

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
 */
public final class UpsertOrders extends ForeachWriter<Row> {
  private static final String NEWER =
      "UPDATE orders SET city = ?, is_deleted = ?, version = ?, ordinal = ?"
          + " WHERE order_num = ? AND (version < ? OR version = ? AND ordinal < ?)";
  private static final String NEW =
      "INSERT INTO orders (city, is_deleted, version, ordinal, order_num) VALUES (?, ?, ?, ?, ?)";
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
    if (kind.equals("update_preimage")) {
      return;
    }
    long version = change.getAs("_commit_version");
    int ordinal = change.getAs("_change_ordinal");
    try {
      for (PreparedStatement each : new PreparedStatement[] {update, insert}) {
        each.setString(1, change.getAs("city"));
        each.setBoolean(2, kind.equals("delete"));
        each.setLong(3, version);
        each.setInt(4, ordinal);
        each.setInt(5, change.getAs("order_num"));
      }
      update.setLong(6, version);
      update.setLong(7, version);
      update.setInt(8, ordinal);
      if (update.executeUpdate() == 0) {
        insert.executeUpdate();
      }
    } catch (SQLException reason) {
      if (!DUPLICATE_KEY.equals(reason.getSQLState())) { // the target has a newer change
        throw new IllegalStateException(reason);
      }
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

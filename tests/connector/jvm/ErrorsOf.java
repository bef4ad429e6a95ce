package informixcdc;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructType;

/** Prints what leaves a stream of the jar where the Python source's stream below it fails. */
final class ErrorsOf {
  private static final List<Throwable> FAILURES =
      List.of(
          new Exception("IFXCDC-0003: our line"), // as Spark's own is, which Scala need not declare
          new IOException("the worker is gone"),
          new ClosedByInterruptException(),
          new InterruptedException("stopped"),
          new IllegalStateException("unchecked"),
          new AssertionError("an error"));

  private record Failing(Throwable failure) implements MicroBatchStream {
    @Override
    public Offset latestOffset() {
      throw ErrorsOf.<RuntimeException>undeclared(failure);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      throw ErrorsOf.<RuntimeException>undeclared(failure);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      throw ErrorsOf.<RuntimeException>undeclared(failure);
    }

    @Override
    public Offset initialOffset() {
      throw ErrorsOf.<RuntimeException>undeclared(failure);
    }

    @Override
    public Offset deserializeOffset(String json) {
      throw ErrorsOf.<RuntimeException>undeclared(failure);
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void stop() {}
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E undeclared(Throwable failure) throws E {
    throw (E) failure;
  }

  /** One line for each failure and question: class, text and the cause's class. */
  public static void main(String[] none) {
    for (Throwable failure : FAILURES) {
      MicroBatchStream stream =
          SourceStream.of(new Failing(failure), new StructType(), "/checkpoint/sources/0", null);
      tell(stream::latestOffset);
      tell(() -> stream.planInputPartitions(null, null));
      tell(stream::createReaderFactory);
    }
  }

  private static void tell(Runnable question) {
    try {
      question.run();
    } catch (Throwable left) {
      Throwable cause = left.getCause();
      String under = cause == null ? "" : cause.getClass().getSimpleName();
      System.out.println(left.getClass().getSimpleName() + "|" + left.getMessage() + "|" + under);
    }
  }
}

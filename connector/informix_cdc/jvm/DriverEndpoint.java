package informixcdc;

import java.io.Closeable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.sql.connector.read.InputPartition;
import scala.Function1;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Answers the question of a task in real-time mode, by Spark's own messages: which rows come next?
 *
 * <p>Rule: messages consist of classes of Java and Spark, because the serializer of Spark's messages
 * does not see the classes of added jars. Questions are answered by a thread of this class: Spark
 * interrupts the threads of a task, which would close the socket to the Python process.
 */
final class DriverEndpoint implements RpcEndpoint, Closeable {
  private final RpcEnv env = SparkEnv.get().rpcEnv();
  private final SourceStream stream;
  private final ExecutorService answering =
      Executors.newSingleThreadExecutor(
          task -> {
            Thread thread = new Thread(task, "informix-cdc ranges");
            thread.setDaemon(true);
            return thread;
          });
  private final RpcEndpointRef ref;

  DriverEndpoint(String name, SourceStream stream) {
    this.stream = stream;
    ref = env.setupEndpoint(name, this);
  }

  @Override
  public RpcEnv rpcEnv() {
    return env;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext call) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Object asked) {
        return asked instanceof Object[];
      }

      @Override
      @SuppressWarnings("unchecked")
      public <A, B> B applyOrElse(A asked, Function1<A, B> otherwise) {
        Question question = Question.of((Object[]) asked);
        if (!stream.isStopped()) {
          answering.execute(() -> answer(question, call));
        }
        return (B) BoxedUnit.UNIT;
      }
    };
  }

  private void answer(Question question, RpcCallContext call) {
    try {
      SourceStream.Range range = stream.after(question.start(), question.beginsBatch());
      call.reply(range == null ? new Object[0] : message(range, question.isElsewhere()));
    } catch (Throwable reason) {
      if (!stream.isStopped()) { // a task of a stopped query is being killed, and asks no more
        call.sendFailure(reason);
      }
    }
  }

  private static Object[] message(SourceStream.Range range, boolean isElsewhere) {
    InputPartition[] partitions = range.partitions();
    byte[][][] contents = new byte[partitions.length][][];
    for (int at = 0; isElsewhere && at < partitions.length; at++) {
      contents[at] = SegmentRange.smallContents(partitions[at]);
    }
    return new Object[] {range.end(), partitions, contents};
  }

  @Override
  public void close() {
    env.stop(ref);
    answering.shutdown();
  }

  /**
   * What a task asks.
   *
   * @param isElsewhere whether it runs in another process, which may not see the driver's files
   */
  record Question(String start, boolean beginsBatch, boolean isElsewhere) {
    static Question of(Object[] message) {
      return new Question((String) message[0], (Boolean) message[1], (Boolean) message[2]);
    }

    Object[] message() {
      return new Object[] {start, beginsBatch, isElsewhere};
    }
  }
}

import io.aeron.Aeron;
import io.aeron.ConcurrentPublication;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.util.Arrays;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Messages of 64 bytes over Aeron's multicast, whose flow control waits for the slowest of all receivers. Aeron does not say
 * when a program has a message: here each receiver answers over a stream of its own way back.
 *
 * <p>{@code Messages send OWN RECEIVERS COUNT}, {@code Messages receive OWN SOURCE NUMBER}.
 */
public final class Messages {
  static final int BYTES = 64;
  static final int SINGLE = 2_000;
  static final int STREAM = 10;
  static final String GROUP = "224.0.1.1:40456";

  private Messages() {}

  public static void main(String[] words) {
    String own = words[1];
    MediaDriver.Context context =
        new MediaDriver.Context()
            .threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(idle())
            .termBufferSparseFile(true)
            .publicationTermBufferLength(1 << 20)
            .dirDeleteOnShutdown(true);
    try (MediaDriver driver = MediaDriver.launch(context);
        Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(driver.aeronDirectoryName()))) {
      if (words[0].equals("send")) {
        send(aeron, own, Integer.parseInt(words[2]), Integer.parseInt(words[3]));
      } else {
        receive(aeron, own, words[2]);
      }
    }
  }

  static IdleStrategy idle() {
    return new BackoffIdleStrategy(10, 20, 1_000, 100_000);
  }

  static String back(String source) {
    return "aeron:udp?endpoint=" + source + ":40457";
  }

  static void send(Aeron aeron, String own, int receivers, int count) {
    String channel = "aeron:udp?endpoint=" + GROUP + "|interface=" + own + "/24|fc=min,g:/" + receivers;
    IdleStrategy idle = idle();
    try (ConcurrentPublication out = aeron.addPublication(channel, STREAM);
        Subscription answers = aeron.addSubscription(back(own), STREAM)) {
      while (!out.isConnected() || answers.imageCount() < receivers) {
        idle.idle();
      }
      UnsafeBuffer message = new UnsafeBuffer(new byte[BYTES]);
      int[] answered = new int[1];
      FragmentHandler take = (buffer, offset, length, header) -> answered[0]++;
      int single = Math.min(SINGLE, count);
      long[] took = new long[single];
      for (int number = 0; number < single; number++) {
        long begun = System.nanoTime();
        answered[0] = 0;
        offer(out, message, true, idle);
        wait(answers, take, answered, receivers, idle);
        took[number] = System.nanoTime() - begun;
      }
      Arrays.sort(took);
      long begun = System.nanoTime();
      answered[0] = 0;
      for (int number = 0; number < count; number++) {
        offer(out, message, number == count - 1, idle);
      }
      wait(answers, take, answered, receivers, idle);
      double seconds = (System.nanoTime() - begun) / 1e9;
      System.out.printf(
          "{\"rate\": %.0f, \"p50_us\": %d, \"p99_us\": %d}%n",
          count / seconds, took[single / 2] / 1_000, took[single * 99 / 100] / 1_000);
    }
  }

  /** With the first byte 1 it asks for an answer. */
  static void offer(ConcurrentPublication out, UnsafeBuffer message, boolean asks, IdleStrategy idle) {
    message.putByte(0, (byte) (asks ? 1 : 0));
    while (out.offer(message, 0, BYTES) < 0) {
      idle.idle();
    }
    idle.reset();
  }

  static void wait(Subscription answers, FragmentHandler take, int[] answered, int wanted, IdleStrategy idle) {
    while (answered[0] < wanted) {
      idle.idle(answers.poll(take, 10));
    }
  }

  static void receive(Aeron aeron, String own, String source) {
    String channel = "aeron:udp?endpoint=" + GROUP + "|interface=" + own + "/24";
    IdleStrategy idle = idle();
    UnsafeBuffer answer = new UnsafeBuffer(new byte[8]);
    try (Subscription in = aeron.addSubscription(channel, STREAM);
        ConcurrentPublication out = aeron.addPublication(back(source), STREAM)) {
      System.out.println("ready");
      FragmentHandler take =
          (buffer, offset, length, header) -> {
            if (buffer.getByte(offset) == 1) {
              while (out.offer(answer, 0, 8) < 0) {
                Thread.onSpinWait();
              }
            }
          };
      FragmentAssembler whole = new FragmentAssembler(take);
      while (true) {
        idle.idle(in.poll(whole, 50));
      }
    }
  }
}

// Messages of 64 bytes over NORM (RFC 5740). The library of a receiver acknowledges a watermark: so its sender knows that all have
// the bytes, though not whether a program there took them.
//
// `norm send OWN RECEIVERS COUNT`, `norm receive OWN SOURCE NUMBER`.
#include <normApi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr char kGroup[] = "224.0.1.2";
constexpr unsigned short kPort = 6003;
constexpr unsigned kBytes = 64, kSingle = 2000, kBuffer = 4 << 20;
constexpr unsigned kSource = 1000;
// Told, as NORM's own congestion control begins at some packets a second.
constexpr double kRate = 400e6, kRoundTrip = 0.001;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void wait_for(NormInstanceHandle instance, NormEventType wanted) {
  NormEvent event;
  while (NormGetNextEvent(instance, &event, true) && event.type != wanted) {
  }
}

int send(NormInstanceHandle instance, NormSessionHandle session, unsigned receivers, unsigned count) {
  NormSetGrttEstimate(session, kRoundTrip);
  NormSetGrttMax(session, 10 * kRoundTrip);
  NormSetBackoffFactor(session, 0);
  NormSetGroupSize(session, receivers);
  NormSetTxRate(session, kRate);
  NormSetTxSocketBuffer(session, kBuffer);
  for (unsigned id = 1; id <= receivers; id++) NormAddAckingNode(session, id);
  NormStartSender(session, 1, kBuffer, 1400, 64, 0);
  NormObjectHandle stream = NormStreamOpen(session, kBuffer);
  char message[kBytes] = {7};

  auto put = [&] {
    unsigned done = 0;
    while ((done += NormStreamWrite(stream, message + done, kBytes - done)) < kBytes) wait_for(instance, NORM_TX_QUEUE_VACANCY);
    NormStreamMarkEom(stream);
  };
  auto all_have_it = [&] {
    do {
      NormStreamFlush(stream, true, NORM_FLUSH_ACTIVE);
      NormSetWatermark(session, stream, true);
      wait_for(instance, NORM_TX_WATERMARK_COMPLETED);
    } while (NormGetAckingStatus(session) != NORM_ACK_SUCCESS);
  };

  put();
  all_have_it();  // all have met
  unsigned single = std::min(kSingle, count);
  std::vector<double> took;
  for (unsigned number = 0; number < single; number++) {
    double begun = now();
    put();
    all_have_it();
    took.push_back(now() - begun);
  }
  std::sort(took.begin(), took.end());
  double begun = now();
  for (unsigned number = 0; number < count; number++) put();
  all_have_it();
  std::printf("{\"rate\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f}\n", count / (now() - begun), took[single / 2] * 1e6,
              took[single * 99 / 100] * 1e6);
  return 0;
}

int receive(NormInstanceHandle instance, NormSessionHandle session) {
  NormSetRxSocketBuffer(session, kBuffer);
  NormStartReceiver(session, kBuffer);
  std::puts("ready");
  std::fflush(stdout);
  NormEvent event;
  char buffer[65536];
  while (NormGetNextEvent(instance, &event, true)) {
    if (event.type != NORM_RX_OBJECT_UPDATED) continue;
    unsigned length;
    do {
      length = sizeof buffer;
    } while (NormStreamRead(event.object, buffer, &length) && length > 0);
  }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  bool sends = std::strcmp(argv[1], "send") == 0;
  NormInstanceHandle instance = NormCreateInstance(false);
  NormSessionHandle session = NormCreateSession(instance, kGroup, kPort, sends ? kSource : std::atoi(argv[4]));
  NormSetMulticastInterface(session, "eth0");
  NormSetDefaultUnicastNack(session, true);
  return sends ? send(instance, session, std::atoi(argv[3]), std::atoi(argv[4])) : receive(instance, session);
}

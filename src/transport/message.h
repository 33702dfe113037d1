// The messages of Foliot's links that core/ does not define.
//
// Whoever connects is a guest, the controller is the host. There is one time
// domain on the wire, the host's clock; guests convert (transport/clock_offset.h).
//
//   action link, a worker and the controller:
//     worker      Hello, Ping..., Registration,          Outcome...
//     controller  Hello, Pong...,               Welcome, Action...
//   request link, a client (a front end, a load generator) and the controller:
//     client      Hello, Ping...,         Request..., Cancel..., StatisticsRequest...
//     controller  Hello, Models, Pong..., Completion...,         Statistics...
//
// Either side may say Goodbye, with the reason, before it closes.
#ifndef FOLIOT_TRANSPORT_MESSAGE_H_
#define FOLIOT_TRANSPORT_MESSAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/ids.h"
#include "core/model_info.h"

namespace foliot {

// Changes with every change of a message; two versions do not talk to each other.
inline constexpr uint16_t kWireVersion = 1;

enum class Role : uint8_t { kController, kWorker, kClient };
std::string_view to_string(Role role);  // "controller", "worker", "client"

// The kinds of frames, by the number that stands in them.
enum class MessageType : uint8_t {
  kGoodbye,
  kPing,
  kPong,
  kRegistration,
  kWelcome,
  kAction,
  kOutcome,
  kModels,
  kRequest,
  kCancel,
  kCompletion,
  kStatisticsRequest,
  kStatistics,
};
std::string_view to_string(MessageType type);  // "GOODBYE", ...

struct Goodbye {
  std::string reason;
};

struct Ping {
  TimePoint sent;  // on the guest's clock
};

struct Pong {
  TimePoint ping_sent;  // as in the Ping
  TimePoint host_time;  // when the host answered
};

// What a worker brings.
struct Registration {
  std::string worker;                 // its name, for people
  std::vector<uint32_t> page_counts;  // of each of its devices
  std::vector<ModelInfo> models;      // every device can run all of them; ids mean nothing yet
};

// The names by which the controller will speak of it, in the same order.
struct Welcome {
  std::vector<DeviceId> devices;
  std::vector<ModelId> models;
};

// What can be asked for; sent at the beginning, and whenever it changes.
struct Models {
  std::vector<ModelInfo> models;
};

struct Cancel {
  RequestId request;
};

struct StatisticsRequest {};

// What the controller did since it was last asked, or since it began.
struct Statistics {
  Duration elapsed;
  uint32_t devices = 0;
  uint64_t requests = 0;
  uint64_t served = 0;
  uint64_t actions = 0;
  // How long the policy took to decide, once a turn of the loop.
  uint64_t decisions = 0;
  Duration decision_p50;
  Duration decision_p99;
  Duration decision_p999;
  Duration decision_max;
  Duration processor_time;  // of the controller's thread
};

}  // namespace foliot

#endif  // FOLIOT_TRANSPORT_MESSAGE_H_

// A container for tests: this test program, started again, which does what its one
// environment variable asks for, over descriptor 3 and without a launcher.
//
// Its model has one input x and one output y of FP32 [5]: y = 2 x + 1, if it does not say otherwise.
#ifndef FOLIOT_ENGINE_CONTAINER_TEST_CONTAINER_H_
#define FOLIOT_ENGINE_CONTAINER_TEST_CONTAINER_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/container_options.h"

namespace foliot {

inline constexpr size_t kTestRowFloats = 5;
inline constexpr const char* kTestContainerVariable = "FOLIOT_TEST_CONTAINER";

inline ContainerOptions test_container(const std::string& behaviour) {
  return {.name = "test",
          .folder = "/",
          .package = "/",
          .launcher = {"/proc/self/exe"},
          .environment = {std::string(kTestContainerVariable) + "=" + behaviour},
          .safety = {.kernel = {.namespaces = false}}};
}

class TestContainer {
 public:
  // Does not return where this process is one.
  static bool run_if_asked() {
    const char* behaviour = std::getenv(kTestContainerVariable);
    if (behaviour != nullptr) ::_exit(TestContainer(behaviour).run());
    return false;
  }

 private:
  static constexpr int kSocket = 3;

  explicit TestContainer(std::string_view behaviour) : behaviour_(behaviour) {}

  static void send(const std::string& packet) { ::send(kSocket, packet.data(), packet.size(), MSG_NOSIGNAL); }
  static void wait_for_ever() {
    while (true) ::pause();
  }

  int run() {
    if (behaviour_ == "ends before it is ready") {
      std::puts("No module named foliot");
      std::fflush(stdout);
      return 7;
    }
    if (behaviour_ == "refuses") return send("Emodel.py has no model\n"), 1;
    if (behaviour_ == "is never ready") wait_for_ever();
    if (behaviour_ == "begins with another packet") return send("R"), 0;
    if (behaviour_ == "describes nonsense") return send("D{\"protocol\": 2}"), 0;
    if (behaviour_ == "has flags") return serve_flags();
    if (behaviour_ == "has strings") return serve_strings();
    send(R"(D{"protocol": 1, "inputs": [{"name": "x", "datatype": "FP32", "shape": [5]}],)"
         R"("outputs": [{"name": "y", "datatype": "FP32", "shape": [5]}], "batch_size_max": 4})");
    return serve();
  }

  // One input and one output of BOOL [5]; the output is the input's bytes, whatever they are.
  int serve_flags() {
    send(R"(D{"protocol": 1, "inputs": [{"name": "x", "datatype": "UINT8", "shape": [5]}],)"
         R"("outputs": [{"name": "y", "datatype": "BOOL", "shape": [5]}]})");
    return serve();
  }

  // One input and one output of BYTES []: the output is the input's memory, whatever it is; of a text
  // that begins with '!' it is longer than its bound.
  int serve_strings() {
    send(R"(D{"protocol": 1, "inputs": [{"name": "x", "datatype": "BYTES", "shape": [], "string_bytes_max": 12}],)"
         R"("outputs": [{"name": "y", "datatype": "BYTES", "shape": [], "string_bytes_max": 12}]})");
    return serve();
  }

  int serve() {
    std::array<char, 64> packet{};
    while (true) {
      int descriptor = -1;
      const ssize_t bytes = receive(packet, descriptor);
      if (bytes <= 0) return 0;
      if (packet[0] == 'M') {
        map(packet, descriptor);
      } else if (packet[0] == 'C') {
        call(packet);
      }
    }
  }

  static ssize_t receive(std::array<char, 64>& packet, int& descriptor) {
    iovec content{packet.data(), packet.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
    msghdr header{};
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = ancillary.data();
    header.msg_controllen = ancillary.size();
    const ssize_t bytes = ::recvmsg(kSocket, &header, 0);
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); bytes > 0 && rights != nullptr) {
      std::memcpy(&descriptor, CMSG_DATA(rights), sizeof(int));
    }
    return bytes;
  }

  void map(const std::array<char, 64>& packet, int descriptor) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, &packet[1], sizeof(bytes));
    if (behaviour_ == "changes the size of memory") {
      for (const auto size : {off_t{0}, static_cast<off_t>(bytes) * 2}) {
        if (::ftruncate(descriptor, size) == 0) return send("Eit could");
      }
    }
    memory_ = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
    send(memory_ == MAP_FAILED ? "Ecannot map" : "R");
  }

  void call(const std::array<char, 64>& packet) {
    uint32_t rows = 0;
    uint64_t input = 0, output = 0;
    std::memcpy(&rows, &packet[1], sizeof(rows));
    std::memcpy(&input, &packet[5], sizeof(input));
    std::memcpy(&output, &packet[13], sizeof(output));
    const auto* from = reinterpret_cast<const float*>(memory_ + input);
    auto* to = reinterpret_cast<float*>(memory_ + output);
    ++calls_;
    if (behaviour_ == "has flags") {
      std::memcpy(to, from, 5);
      return send("R");
    }
    if (behaviour_ == "has strings") {
      std::memcpy(to, from, rows * 16);
      for (char* row = memory_ + output; row < memory_ + output + rows * 16; row += 16) {
        if (row[4] == '!') row[0] = 13;
      }
      return send("R");
    }
    if (behaviour_ == "fails every other call" && calls_ % 2 == 1) return send("EValueError: \x1b[2J");
    if (behaviour_ == "fails on seven" && *from == 7) return send("EValueError: seven");
    if (behaviour_ == "fails on rows that there are not" && rows > 1) return send("F");
    if (behaviour_ == "exits") ::_exit(3);
    if (behaviour_ == "is killed") ::kill(::getpid(), SIGKILL);
    if (behaviour_ == "hangs") wait_for_ever();
    if (behaviour_ == "closes its connection") {
      ::close(kSocket);
      wait_for_ever();
    }
    if (behaviour_ == "answers with another packet") return send("Z");
    if (behaviour_ == "answers with a longer packet") return send("R!");
    if (behaviour_ == "answers with a large error") return send("E" + std::string(5000, 'x'));
    if (behaviour_ == "answers with a packet that is too large") return send("E" + std::string(100'000, 'x'));
    if (behaviour_ == "answers twice") send("R");
    if (behaviour_ == "takes memory") {
      taken_.assign(size_t{128} << 20, 'x');
      wait_for_ever();
    }
    if (behaviour_ == "prints a lot") {
      for (int i = 0; i < 20'000; ++i) std::printf("line %d\n", i);
      std::fflush(stdout);
    }
    const size_t count = behaviour_ == "does nothing" ? 0 : rows * kTestRowFloats;
    for (size_t i = 0; i < count; ++i) to[i] = 2 * from[i] + 1;
    if (behaviour_ == "fails on the second row" && rows > 1) return send(std::string("F\x02\x04\0two\n", 8));
    send("R");
  }

  std::string behaviour_;
  char* memory_ = nullptr;
  int calls_ = 0;
  std::vector<char> taken_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_TEST_CONTAINER_H_

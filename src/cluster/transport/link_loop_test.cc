// Loops over real sockets on loopback: accepting, refusing, and TLS.
#include "cluster/transport/link_loop.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/transport/frame_handlers.h"
#include "foundation/access/test_certificates.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

// A loop on a thread of its own; keeps what it receives, and sends its text to every
// peer whose greeting comes.
class Side : public LinkHandler {
 public:
  explicit Side(LinkLoopOptions options, std::string speech = "") : speech_(std::move(speech)), loop_(options, *this) {}
  ~Side() override { stop(); }

  uint16_t listen() {
    const uint16_t port = loop_.listen("127.0.0.1:0").value();
    start();
    return port;
  }
  void keep(uint16_t port) {
    FOLIOT_CHECK(loop_.keep("127.0.0.1:" + std::to_string(port)).ok());
    start();
  }
  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }
  LinkLoop& loop() { return loop_; }

  // The next message received, or the next reason why a connection ended.
  std::string next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return taken_ < received_.size(); });
    return received_[taken_++];
  }

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role, TimePoint) override {
    if (!speech_.empty()) connection.send(Goodbye{speech_});
    return std::unique_ptr<Session>(std::make_unique<Talk>(*this));
  }
  void on_no_greeting(const std::string&, const Status& reason) override { receive(reason.message()); }
  TimePoint on_turn_end(TimePoint now) override {
    if (const uint16_t port = renewed_.exchange(0); port != 0) {
      const std::string address = "127.0.0.1:" + std::to_string(port);
      loop_.release(address);
      FOLIOT_CHECK(loop_.keep(address).ok());
    }
    {
      std::lock_guard lock(mutex_);
      ++turns_;
      connections_ = loop_.connections();
      most_ = std::max(most_, received_.size() - std::exchange(received_before_, received_.size()));
    }
    changed_.notify_all();
    return now + Duration::milliseconds(1);
  }
  // At the end of the last turn.
  size_t connections() {
    std::lock_guard lock(mutex_);
    return connections_;
  }
  // The most that were received between the ends of two turns.
  size_t most_in_a_turn() {
    std::lock_guard lock(mutex_);
    return most_;
  }
  // So many more turns of the loop, each after its timers.
  void await_turns(uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&, until = turns_ + count] { return turns_ >= until; });
  }
  // Releases the peers that it keeps there, and keeps them again, in one turn.
  void renew(uint16_t port) { renewed_.store(port); }
  // Messages received so far.
  size_t received() {
    std::lock_guard lock(mutex_);
    return received_.size();
  }

 private:
  class Talk : public Session {
   public:
    explicit Talk(Side& side) : side_(side) {}
    Status on_frame(const Frame& frame, TimePoint) override {
      Goodbye goodbye;
      FOLIOT_RETURN_IF_ERROR(decode(frame, goodbye));
      side_.receive(goodbye.reason);
      return Status();
    }
    void on_close(const Status& reason, TimePoint) override { side_.receive(reason.message()); }

   private:
    Side& side_;
  };

  void start() {
    thread_ = std::thread([this] { loop_.run(); });
  }
  void receive(const std::string& what) {
    {
      std::lock_guard lock(mutex_);
      received_.push_back(what);
    }
    changed_.notify_all();
  }

  const std::string speech_;
  LinkLoop loop_;
  std::thread thread_;
  std::atomic<uint16_t> renewed_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> received_;
  size_t taken_ = 0;
  size_t received_before_ = 0;  // this turn
  size_t most_ = 0;
  uint64_t turns_ = 0;
  size_t connections_ = 0;
};

// A socket without a loop.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FOLIOT_CHECK(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~RawSocket() { close(socket_); }
  void say(std::string_view text) {
    FOLIOT_CHECK(send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  // Blocks until the other side closes.
  void await_end() {
    char buffer[256];
    while (recv(socket_, buffer, sizeof buffer, 0) > 0) {
    }
  }

 private:
  const int socket_;
};

struct Identities {
  TestCertificate server = make_test_certificate({.name = "server"});
  TestCertificate client = make_test_certificate({.name = "client"});
  std::shared_ptr<const TlsContext> of_server() const { return of(server, client); }
  std::shared_ptr<const TlsContext> of_client() const { return of(client, server); }
  static std::shared_ptr<const TlsContext> of(const TestCertificate& own, const TestCertificate& peer) {
    return TlsContext::make({own.certificate, own.private_key, peer.certificate}).value();
  }
};

TEST(LinkLoopTest, CarriesFramesThroughTls) {
  const Identities identities;
  const std::string large(4000, 'x');  // as long as a text may be
  Side server({.tls = identities.of_server()}, large);
  Side client({.connection = {.role = Role::kWorker}, .tls = identities.of_client()}, "hello");
  client.keep(server.listen());
  EXPECT_EQ(server.next(), "hello");
  EXPECT_EQ(client.next(), large);
  client.stop();
  EXPECT_EQ(server.next(), "it has stopped");
}

TEST(LinkLoopTest, ReportsThatOneSideSpeaksNoTls) {
  const Identities identities;
  Side server({.tls = identities.of_server()});
  Side plain_server({});
  Side client({.connection = {.role = Role::kWorker}, .tls = identities.of_client()});
  Side plain_client({.connection = {.role = Role::kWorker}});
  plain_client.keep(server.listen());
  EXPECT_THAT(server.next(), HasSubstr("it does not speak TLS"));
  EXPECT_THAT(plain_client.next(), HasSubstr("before its greeting"));
  client.keep(plain_server.listen());
  EXPECT_THAT(plain_server.next(), HasSubstr("it speaks TLS, and this side does not"));
}

TEST(LinkLoopTest, TakesNewCertificatesForNewConnections) {
  const Identities identities;
  Side server({.tls = identities.of_server()});
  const uint16_t port = server.listen();
  const TestCertificate renewed = make_test_certificate({.name = "server"});
  server.loop().use_tls(Identities::of(renewed, identities.client));
  Side client({.connection = {.role = Role::kWorker}, .tls = Identities::of(identities.client, renewed)}, "hello");
  client.keep(port);
  EXPECT_EQ(server.next(), "hello");
}

TEST(LinkLoopTest, ClosesPeersWithoutAGreeting) {
  Side server({.timeouts = {.greeting = Duration::milliseconds(1)}});
  const uint16_t port = server.listen();
  RawSocket silent(port);
  silent.await_end();
  EXPECT_THAT(server.next(), HasSubstr("no greeting within"));
  RawSocket slow(port);
  slow.say("FO");
  slow.await_end();
  EXPECT_THAT(server.next(), HasSubstr("no greeting within"));
}

// Thousands may be due in the same instant, and others are waiting to be read.
TEST(LinkLoopTest, ClosesManySilentPeersAFewInATurn) {
  Side server({.timeouts = {.greeting = Duration::milliseconds(1)}});
  const uint16_t port = server.listen();
  std::vector<std::unique_ptr<RawSocket>> silent(100);
  for (auto& socket : silent) socket = std::make_unique<RawSocket>(port);
  for (size_t i = 0; i < silent.size(); ++i) EXPECT_THAT(server.next(), HasSubstr("no greeting within"));
  server.await_turns(1);
  EXPECT_LE(server.most_in_a_turn(), 8u);
}

TEST(LinkLoopTest, ClosesSilentPeers) {
  Side server({.timeouts = {.silence = Duration::milliseconds(1)}});
  Side client({.connection = {.role = Role::kWorker}, .timeouts = {.silence = Duration::seconds(100)}}, "hello");
  client.keep(server.listen());
  EXPECT_EQ(server.next(), "hello");
  EXPECT_THAT(server.next(), HasSubstr("no message within"));
}

TEST(LinkLoopTest, KeepsOneConnectionToAPeerReleasedAndKeptAgain) {
  Side server({});
  const uint16_t port = server.listen();
  const LinkTimeouts at_once{.reconnect_min = Duration::nanoseconds(1), .reconnect_max = Duration::nanoseconds(1)};
  Side client({.connection = {.role = Role::kWorker}, .timeouts = at_once}, "hello");
  client.keep(port);
  EXPECT_EQ(server.next(), "hello");
  client.renew(port);
  EXPECT_THAT(server.next(), HasSubstr("no longer needed"));
  EXPECT_THAT(server.next(), HasSubstr("closed"));
  EXPECT_EQ(server.next(), "hello");
  client.await_turns(5);  // another would be tried in the next
  EXPECT_EQ(client.connections(), 1u);
  EXPECT_EQ(server.received(), 4u);
}

TEST(LinkLoopTest, EvictsPeersWithoutAGreeting) {
  Side server({.connections_max = 2});
  const uint16_t port = server.listen();
  Side client({.connection = {.role = Role::kWorker}}, "hello");
  client.keep(port);
  EXPECT_EQ(server.next(), "hello");
  RawSocket first(port);
  RawSocket second(port);
  first.await_end();
  EXPECT_THAT(server.next(), HasSubstr("evicted without a greeting"));
}

TEST(LinkLoopTest, BoundsTheMemoryOfHalfReceivedFrames) {
  Side server({.connection = {.role = Role::kController}, .received_bytes_max = 20'000});
  RawSocket stranger(server.listen());
  std::string speech("FOLT?\0\1\0", 8);
  speech[4] = static_cast<char>(kWireVersion);
  speech.resize(kGreetingBytes);
  speech += std::string("\0\0\x10\0\0", 5);  // the length of the frame, 1 MiB, and its type
  stranger.say(speech + std::string(50'000, 'x'));
  stranger.await_end();
  EXPECT_THAT(server.next(), HasSubstr("partly received frames"));
}

}  // namespace
}  // namespace foliot

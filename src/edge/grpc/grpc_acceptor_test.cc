// Real sockets, and a server that only keeps what it is given.
#include "edge/grpc/grpc_acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace foliot {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// What was handed over; its owner closes it.
class Taken {
 public:
  void add(int descriptor) {
    {
      std::lock_guard lock(mutex_);
      descriptors_.push_back(descriptor);
    }
    changed_.notify_all();
  }
  // The one of number `index`.
  int await(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return descriptors_.size() > index; });
    return descriptors_[index];
  }
  size_t count() {
    std::lock_guard lock(mutex_);
    return descriptors_.size();
  }
  ~Taken() {
    for (const int descriptor : descriptors_) close(descriptor);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> descriptors_;
};

class KeepingServer : public GrpcAcceptor::Server {
 public:
  explicit KeepingServer(Taken& taken) : taken_(taken) {}
  void HandleNewConnection(NewConnectionParameters* connection) override { taken_.add(connection->fd); }

 private:
  Taken& taken_;
};

constexpr Duration kForever = Duration::seconds(3600);

class GrpcAcceptorTest : public ::testing::Test {
 protected:
  explicit GrpcAcceptorTest(Duration idle_before_eviction = kForever, Duration idle_timeout = kForever,
                            Duration request_timeout = kForever)
      : acceptor_({.connections_max = 2,
                   .idle_before_eviction = idle_before_eviction,
                   .idle_timeout = idle_timeout,
                   .request_timeout = request_timeout,
                   .now = [this] { return TimePoint::from_nanoseconds(now_ns_); },
                   .calling_ports = [this] { return calling_ports(); }}) {}
  void SetUp() override {
    const auto port = acceptor_.listen("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.status().message();
    endpoint_ = tcp::endpoint(boost::asio::ip::address_v4::loopback(), *port);
  }
  void start() { acceptor_.start(std::make_unique<KeepingServer>(taken_)); }
  tcp::socket connect() {
    tcp::socket client(context_);
    client.connect(endpoint_);
    return client;
  }
  // As clients do that try again: one that comes while others are refused may be refused with them.
  void connect_until_taken(size_t count) {
    while (taken_.count() < count) {
      tcp::socket client = connect();
      client.non_blocking(true);
      error_code error = boost::asio::error::would_block;
      char byte;
      while (taken_.count() < count && error == boost::asio::error::would_block) {
        client.receive(boost::asio::buffer(&byte, 1), tcp::socket::message_peek, error);
        std::this_thread::yield();
      }
    }
  }
  // Waits for it.
  static bool is_closed(tcp::socket& client) {
    char byte;
    error_code error;
    client.receive(boost::asio::buffer(&byte, 1), 0, error);
    return error == boost::asio::error::eof || error == boost::asio::error::connection_reset;
  }
  // Until the kernel says that nothing was received, or sent, for some milliseconds.
  static void await_idleness(int descriptor) {
    tcp_info info{};
    do {
      std::this_thread::yield();
      socklen_t size = sizeof info;
      ASSERT_EQ(getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    } while (std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent) < 10);
  }
  void advance(Duration time) { now_ns_ += time.nanoseconds(); }
  void begin_call(const tcp::socket& client, Turn turn = Turn::kOurs) {
    std::lock_guard lock(mutex_);
    calling_ports_[client.local_endpoint().port()] = turn;
  }

  boost::asio::io_context context_;
  tcp::endpoint endpoint_;
  Taken taken_;

 private:
  std::unordered_map<uint16_t, Turn> calling_ports() {
    std::lock_guard lock(mutex_);
    return calling_ports_;
  }

  std::atomic<int64_t> now_ns_{0};
  std::mutex mutex_;
  std::unordered_map<uint16_t, Turn> calling_ports_;

 protected:
  GrpcAcceptor acceptor_;
};

// Connections without a call are evicted.
class GrpcAcceptorIdleTest : public GrpcAcceptorTest {
 protected:
  GrpcAcceptorIdleTest() : GrpcAcceptorTest(Duration()) {}
};

TEST_F(GrpcAcceptorTest, HandsOverWhatConnects) {
  start();
  const tcp::socket client = connect();
  const int descriptor = taken_.await(0);
  EXPECT_NE(fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ASSERT_EQ(getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_EQ(no_delay, 1);
}

TEST_F(GrpcAcceptorTest, WhatCameBeforeItBeganIsHandedOver) {
  const tcp::socket client = connect();
  start();
  taken_.await(0);
}

TEST_F(GrpcAcceptorTest, OneMoreThanThereMayBeIsClosed) {
  start();
  tcp::socket first = connect();
  const tcp::socket second = connect();
  tcp::socket third = connect();
  EXPECT_TRUE(is_closed(third));
  EXPECT_EQ(taken_.count(), 2u);
}

TEST_F(GrpcAcceptorTest, WhatTheServerClosesMakesRoom) {
  start();
  tcp::socket first = connect();
  const tcp::socket second = connect();
  tcp::socket third = connect();
  EXPECT_TRUE(is_closed(third));
  // Something else has its number by now.
  const int number = taken_.await(0);
  ASSERT_EQ(dup2(first.native_handle(), number), number);
  tcp::socket soon = connect();
  EXPECT_TRUE(is_closed(soon)) << "it looked a moment ago";
  advance(Duration::milliseconds(100));
  const tcp::socket later = connect();
  taken_.await(2);
  tcp::socket fourth = connect();
  EXPECT_TRUE(is_closed(fourth));
}

TEST_F(GrpcAcceptorIdleTest, TheOneIdleLongestIsEvicted) {
  start();
  tcp::socket first = connect();
  tcp::socket second = connect();
  const int first_taken = taken_.await(0);
  taken_.await(1);
  await_idleness(first_taken);
  second.send(boost::asio::buffer("still here"));
  const tcp::socket third = connect();
  taken_.await(2);
  EXPECT_TRUE(is_closed(first));
}

TEST_F(GrpcAcceptorIdleTest, OneWithACallIsNot) {
  start();
  tcp::socket first = connect();
  tcp::socket second = connect();
  begin_call(first);
  const tcp::socket third = connect();
  taken_.await(2);
  EXPECT_TRUE(is_closed(second));
  begin_call(third);
  advance(Duration::milliseconds(100));
  tcp::socket fourth = connect();
  EXPECT_TRUE(is_closed(fourth));
}

TEST_F(GrpcAcceptorIdleTest, OneWithAWaitingStreamIsNot) {
  start();
  const tcp::socket first = connect();
  tcp::socket second = connect();
  begin_call(first, Turn::kTheirs);
  const tcp::socket third = connect();
  taken_.await(2);
  EXPECT_TRUE(is_closed(second));
}

// Idle streams are evicted, too, as are those to which nothing is sent, whatever they
// send.
class GrpcAcceptorTimeoutTest : public GrpcAcceptorTest {
 protected:
  GrpcAcceptorTimeoutTest() : GrpcAcceptorTest(Duration(), Duration(), Duration()) {}
};

TEST_F(GrpcAcceptorTimeoutTest, AStreamIsEvictedUnlessARequestIsUnanswered) {
  start();
  tcp::socket first = connect();
  tcp::socket second = connect();
  begin_call(first, Turn::kOurs);
  begin_call(second, Turn::kTheirs);
  const tcp::socket third = connect();
  taken_.await(2);
  EXPECT_TRUE(is_closed(second));
}

TEST_F(GrpcAcceptorTimeoutTest, OneThatSendsAndIsSentNothingIsEvicted) {
  start();
  tcp::socket first = connect();
  tcp::socket second = connect();
  const int second_taken = taken_.await(1);
  await_idleness(taken_.await(0));
  ASSERT_EQ(send(second_taken, "more", 4, 0), 4);
  first.send(boost::asio::buffer("a byte now and then"));
  const tcp::socket third = connect();
  taken_.await(2);
  EXPECT_TRUE(is_closed(first));
}

TEST_F(GrpcAcceptorTest, WhatWaitsIsClosedWhenItStops) {
  tcp::socket client = connect();
  acceptor_.stop();
  EXPECT_TRUE(is_closed(client));
  error_code error;
  tcp::socket(context_).connect(endpoint_, error);
  EXPECT_EQ(error, boost::asio::error::connection_refused);
}

TEST_F(GrpcAcceptorTest, StopsWhileItWaits) {
  start();
  const tcp::socket client = connect();
  taken_.await(0);
  acceptor_.stop();
  error_code error;
  tcp::socket(context_).connect(endpoint_, error);
  EXPECT_EQ(error, boost::asio::error::connection_refused);
}

// Leaves the process no descriptors for what comes after the first connection.
class LastServer : public GrpcAcceptor::Server {
 public:
  enum class Leaves { kNone, kSpare };
  LastServer(Taken& taken, Leaves leaves) : taken_(taken), leaves_(leaves) {}
  void HandleNewConnection(NewConnectionParameters* connection) override {
    Taken& taken = taken_;  // sanitizers need descriptors themselves to look at `this`
    if (taken.count() == 0) {
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      const int next = dup(connection->fd);
      close(next);
      limit.rlim_cur = leaves_ == Leaves::kNone ? 0 : static_cast<rlim_t>(next);
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    taken.add(connection->fd);
  }

 private:
  Taken& taken_;
  const Leaves leaves_;
};

TEST_F(GrpcAcceptorTest, WithoutDescriptorsButASpareOneConnectionsAreRefused) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  tcp::socket first = connect(), second = connect();
  acceptor_.start(std::make_unique<LastServer>(taken_, LastServer::Leaves::kSpare));
  taken_.await(0);
  EXPECT_TRUE(is_closed(second));
  EXPECT_EQ(taken_.count(), 1u);
  setrlimit(RLIMIT_NOFILE, &limit);
  connect_until_taken(2);
}

TEST_F(GrpcAcceptorTest, WithoutDescriptorsConnectionsWait) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const tcp::socket first = connect(), second = connect();
  acceptor_.start(std::make_unique<LastServer>(taken_, LastServer::Leaves::kNone));
  taken_.await(0);
  while (acceptor_.failures() == 0) std::this_thread::yield();
  const size_t taken_without = taken_.count();
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(taken_without, 1u);
  connect_until_taken(2);
}

}  // namespace
}  // namespace foliot

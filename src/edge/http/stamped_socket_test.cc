#include "edge/http/stamped_socket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace foliot {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

class StampedSocketTest : public ::testing::Test {
 protected:
  StampedSocketTest() {
    StampedSocket::enable_stamps(acceptor_);
    client_.connect(acceptor_.local_endpoint());
  }
  StampedSocket accepted() {
    StampedSocket socket(acceptor_.accept());
    socket.socket().non_blocking(true);
    return socket;
  }
  // What one read brings; its error is in error_.
  std::string read(StampedSocket& socket, size_t bytes_max = 64) {
    std::string text(bytes_max, '\0');
    socket.async_read_some(net::buffer(text), [&](error_code error, size_t bytes) {
      error_ = error;
      text.resize(bytes);
    });
    context_.restart();
    context_.run();
    return text;
  }

  static Duration now() {
    return Duration::nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
  }

  net::io_context context_;
  tcp::acceptor acceptor_{context_, {net::ip::address_v4::loopback(), 0}};
  tcp::socket client_{context_};
  error_code error_;
};

TEST_F(StampedSocketTest, ReadsWhatCameUntilTheEnd) {
  StampedSocket socket = accepted();
  net::write(client_, net::buffer("hello", 5));
  EXPECT_EQ(read(socket, 3), "hel");
  EXPECT_EQ(read(socket), "lo");
  EXPECT_FALSE(error_);
  client_.close();
  EXPECT_EQ(read(socket), "");
  EXPECT_EQ(error_, net::error::eof);
}

TEST_F(StampedSocketTest, WaitsForWhatComesLater) {
  StampedSocket socket = accepted();
  std::string text(8, '\0');
  size_t read_bytes = 0;
  socket.async_read_some(net::buffer(text), [&](error_code, size_t bytes) { read_bytes = bytes; });
  context_.poll();
  EXPECT_EQ(read_bytes, 0u);
  net::write(client_, net::buffer("x", 1));
  context_.restart();
  context_.run();
  EXPECT_EQ(read_bytes, 1u);
}

TEST_F(StampedSocketTest, ReadsNothingWithoutWaiting) {
  StampedSocket socket = accepted();
  EXPECT_EQ(read(socket, 0), "");
  EXPECT_FALSE(error_);
}

TEST_F(StampedSocketTest, ClosingEndsTheRead) {
  StampedSocket socket = accepted();
  std::string text(8, '\0');
  socket.async_read_some(net::buffer(text), [&](error_code error, size_t) { error_ = error; });
  context_.poll();
  socket.socket().close();
  context_.restart();
  context_.run();
  EXPECT_EQ(error_, net::error::operation_aborted);
}

TEST_F(StampedSocketTest, AStepOfTheClockMakesNothingOlderThanAnAgeMayBe) {
  const Duration stamp = Duration::seconds(1'700'000'000);
  EXPECT_EQ(StampedSocket::waited(stamp, stamp + Duration::milliseconds(5)), Duration::milliseconds(5));
  EXPECT_EQ(StampedSocket::waited(stamp, stamp + Duration::seconds(3600)), StampedSocket::kAgeMax);
  EXPECT_EQ(StampedSocket::waited(stamp, stamp - Duration::seconds(3600)), Duration());
}

TEST_F(StampedSocketTest, WhatWasReadLongAgoIsNoOlderThanAnAgeMayBe) {
  StampedSocket socket = accepted();
  net::write(client_, net::buffer("x", 1));
  const Duration before = now();
  read(socket);
  const Duration after = now();
  EXPECT_LE(socket.age_at(after), StampedSocket::kAgeMax);
  EXPECT_GE(socket.age_at(after + Duration::seconds(1)), Duration::seconds(1));
  EXPECT_EQ(socket.age_at(after + Duration::seconds(3600)), StampedSocket::kAgeMax);
  EXPECT_EQ(socket.age_at(before - Duration::seconds(3600)), Duration());
}

// The kernel begins to stamp some time after it was asked to for the first time, from a thread
// of its own, which a busy machine lets wait.
TEST_F(StampedSocketTest, KnowsHowLongItsBytesHaveWaitedEvenBeforeItWasAccepted) {
  net::write(client_, net::buffer("x", 1));
  Duration written = now();
  StampedSocket socket = accepted();
  read(socket);
  const auto counts_from_the_write = [&] {
    const Duration later = now();
    return socket.age_at(later) >= later - written;
  };
  for (int i = 0; i < 1'000'000 && !counts_from_the_write(); ++i) {
    net::write(client_, net::buffer("x", 1));
    written = now();
    read(socket);
  }
  EXPECT_TRUE(counts_from_the_write()) << "its age counts from when it was read";
}

}  // namespace
}  // namespace foliot

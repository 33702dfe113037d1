// TestPeer: the other end of a connection under test, whose bytes the test writes and
// reads, without sockets.
#ifndef FOLIOT_CLUSTER_SESSIONS_TEST_PEER_H_
#define FOLIOT_CLUSTER_SESSIONS_TEST_PEER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cluster/transport/connection.h"

namespace foliot {

inline TimePoint at_ms(int64_t milliseconds) { return TimePoint() + Duration::milliseconds(milliseconds); }

class TestPeer {
 public:
  // Sends `host` a greeting as `role`. `dialed`: the address that the handler connected
  // to; empty: the peer connected.
  TestPeer(ConnectionHandler& host, Role role, std::string dialed = {}, Standing standing = {})
      : connection_({}, ConnectionEnds{"peer", std::move(dialed), "10.0.0.1"}, host, driver_) {
    WireBytes greeting;
    WireWriter writer(greeting);
    writer.put(uint32_t{0x544c4f46});
    writer.put(kWireVersion);
    writer.put(role);
    writer.put(standing.stands_by);
    writer.put(standing.epoch);
    take();
    opened_ = receive(greeting);
    EXPECT_TRUE(opened_.ok() || standing.epoch > 0) << opened_.message();
  }

  template <typename Message>
  Status say(const Message& message) {
    WireBytes bytes;
    encode(message, bytes);
    return receive(bytes);
  }

  // What the handler has sent since the last call; valid until the next.
  std::vector<Frame> frames() {
    take();
    read_ = std::exchange(unread_, {});
    std::vector<Frame> frames;
    for (size_t begin = kGreetingBytes * static_cast<size_t>(!std::exchange(greeted_, true)); begin < read_.size();) {
      uint32_t length;
      std::memcpy(&length, read_.data() + begin, sizeof(length));
      frames.push_back({static_cast<MessageType>(read_[begin + kFrameLengthBytes]),
                        std::span(read_).subspan(begin + kFrameLengthBytes + 1, length - 1)});
      begin += kFrameLengthBytes + length;
    }
    return frames;
  }
  // Of these frames, those of one type.
  template <typename Message>
  std::vector<Message> received(MessageType type) {
    std::vector<Message> messages;
    for (const Frame& frame : frames()) {
      if (frame.type != type) continue;
      EXPECT_TRUE(decode(frame, messages.emplace_back()).ok());
    }
    return messages;
  }
  // The last of the messages of its type.
  template <typename Message>
  Message last() {
    WireBytes bytes;
    encode(Message(), bytes);
    const std::vector<Message> all = received<Message>(static_cast<MessageType>(bytes[kFrameLengthBytes]));
    if (!all.empty()) return all.back();
    ADD_FAILURE() << "nothing was sent";
    return Message();
  }
  // As a server that a client connects to: answers its pings until none comes.
  void answer_pings() {
    for (auto pings = received<Ping>(MessageType::kPing); !pings.empty(); pings = received<Ping>(MessageType::kPing)) {
      EXPECT_TRUE(say(Pong{pings.back().sent, now}).ok());
    }
  }

  // Errors: the handler refused the connection.
  const Status& opened() const { return opened_; }
  Status check() const { return connection_.check(); }
  void close() { connection_.close(Status::unavailable("gone"), false, now); }

  TimePoint now = TimePoint() + Duration::milliseconds(1);

 private:
  class NoDriver : public ConnectionDriver {
   public:
    void on_unsent(Connection&) override {}
  };

  Status receive(const WireBytes& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const auto space = connection_.space();
      const size_t piece = std::min(space.size(), bytes.size() - done);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), piece, space.begin());
      done += piece;
      FOLIOT_RETURN_IF_ERROR(connection_.received(piece, now));
    }
    return Status();
  }
  void take() {
    unread_.insert(unread_.end(), connection_.unsent().begin(), connection_.unsent().end());
    connection_.sent(connection_.unsent_bytes());
  }

  NoDriver driver_;
  Status opened_;
  Connection connection_;
  WireBytes unread_;
  WireBytes read_;
  bool greeted_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_TEST_PEER_H_

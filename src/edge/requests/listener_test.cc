#include "edge/requests/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;

class ListenerTest : public ::testing::Test {
 protected:
  Status listen(const std::string& address, uint16_t port) { return listen_at(acceptor_, address, port, "--a-port"); }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_};
};

TEST_F(ListenerTest, TakesAnyFreePort) {
  ASSERT_TRUE(listen("127.0.0.1", 0).ok());
  tcp::socket client(context_);
  client.connect(acceptor_.local_endpoint());
}

TEST_F(ListenerTest, APortIsOneServersOnly) {
  ASSERT_TRUE(listen("127.0.0.1", 0).ok());
  tcp::acceptor second(context_);
  const Status status = listen_at(second, "127.0.0.1", acceptor_.local_endpoint().port(), "--a-port");
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("is in use; choose another with --a-port"));
}

TEST_F(ListenerTest, AnAddressMustBeThisMachines) {
  const Status name = listen("localhost", 0);
  EXPECT_EQ(name.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(name.message(), HasSubstr("'localhost' is not an IP address"));
  const Status other = listen("192.0.2.1", 0);
  EXPECT_EQ(other.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(other.message(), HasSubstr("cannot listen on port 0 of 192.0.2.1"));
}

}  // namespace
}  // namespace foliot

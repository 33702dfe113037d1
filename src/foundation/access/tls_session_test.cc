#include "foundation/access/tls_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "foundation/access/test_certificates.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const TlsContext> context(const TestCertificate& own, const TestCertificate& peer) {
  return TlsContext::make({own.certificate, own.private_key, peer.certificate}).value();
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Two ends, and the bytes between them, in pieces.
class Pair {
 public:
  Pair(std::shared_ptr<const TlsContext> caller, std::shared_ptr<const TlsContext> called)
      : caller_(*caller, TlsEnd::kCaller), called_(*called, TlsEnd::kCalled) {}

  // Until neither has anything to send, or one has an error.
  Status carry(size_t piece = SIZE_MAX) {
    while (!caller_.unsent().empty() || !called_.unsent().empty()) {
      FOLIOT_RETURN_IF_ERROR(carry(caller_, called_, received_by_called, piece));
      FOLIOT_RETURN_IF_ERROR(carry(called_, caller_, received_by_caller, piece));
    }
    return Status();
  }
  TlsSession& caller() { return caller_; }
  TlsSession& called() { return called_; }

  std::string received_by_caller;
  std::string received_by_called;

 private:
  static Status carry(TlsSession& from, TlsSession& to, std::string& received, size_t piece) {
    const auto bytes = from.unsent().first(std::min(piece, from.unsent().size()));
    FOLIOT_RETURN_IF_ERROR(to.receive(bytes));
    from.sent(bytes.size());
    std::string plain(1000, ' ');
    while (true) {
      FOLIOT_ASSIGN_OR_RETURN(const size_t size, to.read(std::as_writable_bytes(std::span(plain))));
      if (size == 0) return Status();
      received.append(plain, 0, size);
    }
  }

  TlsSession caller_;
  TlsSession called_;
};

class TlsSessionTest : public ::testing::Test {
 protected:
  const TestCertificate one_ = make_test_certificate({.name = "one"});
  const TestCertificate two_ = make_test_certificate({.name = "two"});
  const TestCertificate expired_ = make_test_certificate({.name = "old", .days = -1});
};

TEST_F(TlsSessionTest, CarriesBytesBothWays) {
  for (const size_t piece : {size_t{7}, SIZE_MAX}) {
    Pair pair(context(one_, two_), context(two_, one_));
    EXPECT_FALSE(pair.caller().established());
    ASSERT_TRUE(pair.carry(piece).ok());
    ASSERT_TRUE(pair.caller().established());
    ASSERT_TRUE(pair.called().established());
    const std::string question(100'000, '?');
    const std::string answer(100'000, '!');
    ASSERT_TRUE(pair.caller().write(bytes_of(question)).ok());
    ASSERT_TRUE(pair.called().write(bytes_of(answer)).ok());
    const auto secret = std::as_bytes(std::span("????????", 8));
    const auto sealed = pair.caller().unsent();
    EXPECT_EQ(std::search(sealed.begin(), sealed.end(), secret.begin(), secret.end()), sealed.end());
    ASSERT_TRUE(pair.carry(piece * 1000).ok());
    EXPECT_EQ(pair.received_by_called, question);
    EXPECT_EQ(pair.received_by_caller, answer);
  }
}

TEST_F(TlsSessionTest, RefusesCertificatesOfAnotherAuthority) {
  Pair stranger(context(one_, two_), context(two_, two_));
  EXPECT_THAT(stranger.carry().message(), HasSubstr("its certificate is not accepted: "));
  Pair impostor(context(one_, one_), context(two_, one_));
  EXPECT_THAT(impostor.carry().message(), HasSubstr("its certificate is not accepted: "));
}

TEST_F(TlsSessionTest, RefusesExpiredCertificates) {
  Pair old_caller(context(expired_, two_), context(two_, expired_));
  EXPECT_THAT(old_caller.carry().message(), HasSubstr("certificate has expired"));
  Pair old_called(context(one_, expired_), context(expired_, one_));
  EXPECT_THAT(old_called.carry().message(), HasSubstr("certificate has expired"));
}

TEST_F(TlsSessionTest, RefusesPeersWithoutTls) {
  TlsSession called(*context(one_, two_), TlsEnd::kCalled);
  EXPECT_THAT(called.receive(bytes_of("FOLT and then some more")).message(), HasSubstr("does not speak TLS"));
  TlsSession caller(*context(one_, two_), TlsEnd::kCaller);
  EXPECT_THAT(caller.receive(bytes_of("FOLT and then some more")).message(), HasSubstr("does not speak TLS"));
}

TEST_F(TlsSessionTest, NeedsFilesThatFit) {
  EXPECT_FALSE(TlsContext::make({one_.certificate, two_.private_key, two_.certificate}).ok());
  EXPECT_FALSE(TlsContext::make({"no certificate", one_.private_key, two_.certificate}).ok());
  EXPECT_FALSE(TlsContext::make({one_.certificate, one_.private_key, "no certificate"}).ok());
}

}  // namespace
}  // namespace foliot

#include "foundation/access/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "foundation/access/test_certificates.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

class TlsTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    // Tests run side by side.
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    const auto path = std::filesystem::path(::testing::TempDir()) / ("foliot_" + test + "_" + name);
    std::ofstream(path) << text;
    return path;
  }
  std::string error(const TlsFiles& files) { return read_tls_identity(files).status().message(); }

  const TestCertificate one_ = make_test_certificate();
  const TestCertificate other_ = make_test_certificate();
  const std::filesystem::path certificate_ = file("certificate.pem", one_.certificate);
  const std::filesystem::path key_ = file("key.pem", one_.private_key);
};

TEST_F(TlsTest, ReadsACertificateWithItsKey) {
  const auto identity = read_tls_identity({certificate_, key_, file("authority.pem", other_.certificate)});
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->certificate, one_.certificate);
  EXPECT_EQ(identity->private_key, one_.private_key);
  EXPECT_EQ(identity->peer_authority, other_.certificate);
}

TEST_F(TlsTest, NamesTheFileThatIsWrong) {
  EXPECT_THAT(error({"nowhere.pem", key_, {}}), HasSubstr("nowhere.pem: cannot read the certificate"));
  EXPECT_THAT(error({certificate_, {}, {}}), HasSubstr("its private key is missing"));
  EXPECT_THAT(error({key_, key_, {}}), HasSubstr("not a certificate"));
  EXPECT_THAT(error({certificate_, certificate_, {}}), HasSubstr("not a private key"));
  EXPECT_THAT(error({certificate_, file("other.pem", other_.private_key), {}}), HasSubstr("is not the private key of"));
  EXPECT_THAT(error({certificate_, key_, key_}), HasSubstr("not a certificate"));
  const auto expired = make_test_certificate({.days = -1});
  EXPECT_THAT(error({file("expired.pem", expired.certificate), file("expired_key.pem", expired.private_key), {}}),
              HasSubstr("has expired"));
}

}  // namespace
}  // namespace foliot

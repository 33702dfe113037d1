#include "foundation/access/api_key.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <charconv>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr std::string_view kPrefix = "foliot-";
constexpr size_t kDigitsPerByte = 2;

}  // namespace

std::string random_api_key() {
  KeyDigest bits;
  FOLIOT_CHECK(RAND_bytes(bits.data(), static_cast<int>(bits.size())) == 1);
  return std::string(kPrefix) + to_hexadecimal(bits);
}

KeyDigest digest_of(std::string_view key) {
  KeyDigest digest;
  static_assert(std::tuple_size_v<KeyDigest> == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

bool same_digest(const KeyDigest& a, const KeyDigest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string to_hexadecimal(const KeyDigest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<KeyDigest> digest_from_hexadecimal(std::string_view text) {
  KeyDigest digest;
  if (text.size() != digest.size() * kDigitsPerByte) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const char* const begin = text.data() + i * kDigitsPerByte;
    const auto [end, error] = std::from_chars(begin, begin + kDigitsPerByte, digest[i], 16);
    if (error != std::errc() || end != begin + kDigitsPerByte) return std::nullopt;
  }
  return digest;
}

}  // namespace foliot

// ApiKey: a secret that a client shows, and its digest, which is all that a server
// keeps. Keys are 256 random bits, so a plain SHA-256 cannot be searched, unlike
// that of a password.
#ifndef FOLIOT_FOUNDATION_ACCESS_API_KEY_H_
#define FOLIOT_FOUNDATION_ACCESS_API_KEY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foliot {

using KeyDigest = std::array<uint8_t, 32>;

// "foliot-" and 64 hexadecimal digits.
std::string random_api_key();

KeyDigest digest_of(std::string_view key);
// Takes the same time wherever they differ.
bool same_digest(const KeyDigest& a, const KeyDigest& b);

std::string to_hexadecimal(const KeyDigest& digest);
// nullopt unless it is 64 hexadecimal digits.
std::optional<KeyDigest> digest_from_hexadecimal(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_API_KEY_H_

// Records of the log of a personal model, and pieces of its snapshots, as bytes.
#ifndef FOLIOT_PERSONAL_USER_RECORDS_H_
#define FOLIOT_PERSONAL_USER_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "personal/observation_table.h"

namespace foliot {

// Observations of a user; none: it is to be forgotten.
struct UserRecord {
  uint64_t user = 0;
  std::vector<UserObservation> observations{};
};

std::vector<std::byte> encode_record(uint64_t user, std::span<const UserObservation> observations);
// nullopt: it is no such record.
std::optional<UserRecord> decode_record(std::span<const std::byte> record);

// A user as a snapshot holds it.
struct StoredUser {
  ObservationTable::User user{};
  std::vector<float> weights{};  // of all its observations; empty: not known
};

// `fingerprint`: of the version that the weights belong to.
void encode_user(const ObservationTable::User& user, std::span<const float> weights, uint64_t fingerprint,
                 std::vector<std::byte>& piece);
// Without the weights if they belong to another version.
std::optional<StoredUser> decode_user(std::span<const std::byte> piece, uint64_t fingerprint);

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_USER_RECORDS_H_

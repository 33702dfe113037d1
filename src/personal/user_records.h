// Records of the log of a personal model, and pieces of its snapshots, as bytes.
#ifndef FOLIOT_PERSONAL_USER_RECORDS_H_
#define FOLIOT_PERSONAL_USER_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "personal/user_table.h"

namespace foliot {

// Observations of a user; none: it is to be forgotten.
struct UserRecord {
  uint64_t user = 0;
  std::vector<UserObservation> observations{};
};

std::vector<std::byte> encode_record(uint64_t user, std::span<const UserObservation> observations);
// nullopt: it is no such record.
std::optional<UserRecord> decode_record(std::span<const std::byte> record);

// `items_checksum`: of the table of items that the weights belong to.
void encode_user(const UserTable::Stored& user, uint64_t items_checksum, std::vector<std::byte>& piece);
// Without the weights if they belong to another table.
std::optional<UserTable::Stored> decode_user(std::span<const std::byte> piece, uint64_t items_checksum);

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_USER_RECORDS_H_

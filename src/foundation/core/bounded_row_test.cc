#include "foundation/core/bounded_row.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

TensorSpec strings(Shape shape, Shape most, uint64_t string_bytes) {
  return {.name = "t",
          .type = DataType::kBytes,
          .shape = std::move(shape),
          .dimension_names = {},
          .bound = RowBound{std::move(most), string_bytes}};
}

TensorSpec numbers(Shape shape, Shape most) {
  return {.name = "x",
          .type = DataType::kFloat32,
          .shape = std::move(shape),
          .dimension_names = {},
          .bound = RowBound{std::move(most)}};
}

std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

// A row in memory that was used before.
std::string written(const TensorSpec& tensor, const Shape& extents, const std::string& elements) {
  std::string memory(bounded_row_bytes(tensor), '\xff');
  EXPECT_TRUE(write_row(tensor, extents, view(elements), std::as_writable_bytes(std::span(memory))));
  return memory;
}

TEST(BoundedRowTest, MemoryHasRoomForExtentsLengthsAndStrings) {
  EXPECT_EQ(bounded_row_bytes(strings({}, {}, 10)), 16);           // 4 + 10, in eights
  EXPECT_EQ(bounded_row_bytes(strings({2, -1}, {2, 3}, 8)), 40);   // 8 + 6 * 4 + 8
  EXPECT_EQ(bounded_row_bytes(numbers({-1, 3}, {5, 3})), 8 + 64);  // 8 + 60, in eights
}

TEST(BoundedRowTest, StringsAreFoundAgain) {
  const TensorSpec tensor = strings({-1}, {3}, 16);
  const std::string elements = serialized({"one", "", std::string_view("a\0b", 3)});
  const std::string memory = written(tensor, {3}, elements);
  EXPECT_EQ(used_bytes(tensor, view(memory)), 8 + elements.size());
  EXPECT_EQ(extents_of(tensor, view(memory)), Shape{3});
  const std::span<const std::byte> found = elements_of(tensor, view(memory));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(found.data()), found.size()), elements);
}

TEST(BoundedRowTest, NumbersTakeTheirExtents) {
  const TensorSpec tensor = numbers({-1, 2}, {4, 2});
  const std::string memory = written(tensor, {3, 2}, std::string(24, '\1'));
  EXPECT_EQ(used_bytes(tensor, view(memory)), 8 + 24);
  EXPECT_EQ(extents_of(tensor, view(memory)), (Shape{3, 2}));
  EXPECT_EQ(elements_of(tensor, view(memory)).size(), 24);
}

TEST(BoundedRowTest, ZerosAreEmptyStringsAndEmptyTensors) {
  const TensorSpec text = strings({2}, {2}, 100);
  EXPECT_EQ(used_bytes(text, view(std::string(bounded_row_bytes(text), '\0'))), 8);
  const TensorSpec tensor = numbers({-1}, {9});
  EXPECT_EQ(used_bytes(tensor, view(std::string(bounded_row_bytes(tensor), '\0'))), 8);
}

TEST(BoundedRowTest, ZerosOfTheLargestExtents) {
  const TensorSpec text = strings({-1}, {3}, 100);
  std::string memory(bounded_row_bytes(text), '\xff');
  write_zeros(text, std::as_writable_bytes(std::span(memory)));
  EXPECT_EQ(extents_of(text, view(memory)), Shape{3});
  EXPECT_EQ(used_bytes(text, view(memory)), 8 + 3 * 4);
}

TEST(BoundedRowTest, WhatIsNoRowIsNoticed) {
  const TensorSpec tensor = strings({-1}, {2}, 8);
  const std::string memory = written(tensor, {2}, serialized({"ab", "c"}));
  EXPECT_TRUE(used_bytes(tensor, view(memory)));
  std::string above = memory;
  above[0] = 3;  // an extent above the bound
  EXPECT_FALSE(used_bytes(tensor, view(above)));
  std::string negative = memory;
  std::memset(negative.data(), 0xff, 8);
  EXPECT_FALSE(used_bytes(tensor, view(negative)));
  std::string beyond = memory;
  beyond[8 + 6 + 3] = '\x7f';  // the second string's length
  EXPECT_FALSE(used_bytes(tensor, view(beyond)));
  EXPECT_FALSE(used_bytes(tensor, view(memory).first(7)));
  EXPECT_FALSE(used_bytes(tensor, view(memory).first(8 + 6 + 4)));
}

TEST(BoundedRowTest, ElementsBeyondTheMemoryAreNotWritten) {
  const TensorSpec tensor = strings({}, {}, 4);
  std::string memory(bounded_row_bytes(tensor), 'x');
  const std::string elements = serialized({"longer"});
  EXPECT_FALSE(write_row(tensor, {}, view(elements), std::as_writable_bytes(std::span(memory))));
  EXPECT_EQ(memory, std::string(memory.size(), 'x'));
}

TEST(BoundedRowTest, BoundsThatDoNotFitAreRefused) {
  EXPECT_TRUE(check_bound(strings({}, {}, 0)).ok());
  EXPECT_TRUE(check_bound(strings({-1, 2}, {7, 2}, 100)).ok());
  EXPECT_TRUE(check_bound(numbers({-1}, {0})).ok());
  EXPECT_TRUE(check_bound({.name = "x", .shape = {3}, .dimension_names = {""}}).ok());
  EXPECT_FALSE(check_bound({.name = "x", .type = DataType::kBytes, .shape = {}, .dimension_names = {}}).ok());
  EXPECT_FALSE(check_bound(strings({2}, {}, 8)).ok());
  EXPECT_FALSE(check_bound(strings({2}, {3}, 8)).ok());
  EXPECT_FALSE(check_bound(strings({-1}, {-1}, 8)).ok());
  EXPECT_FALSE(check_bound(numbers({3}, {3})).ok());
  TensorSpec with_strings = numbers({-1}, {3});
  with_strings.bound->string_bytes = 1;
  EXPECT_FALSE(check_bound(with_strings).ok());
  EXPECT_FALSE(check_bound(strings({}, {}, kBoundedRowBytesMax)).ok());
  EXPECT_FALSE(check_bound(strings({}, {}, UINT64_MAX)).ok());
  EXPECT_FALSE(check_bound(numbers({-1, -1}, {int64_t{1} << 40, int64_t{1} << 40})).ok());
}

}  // namespace
}  // namespace foliot

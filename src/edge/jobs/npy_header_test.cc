#include "edge/jobs/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace foliot {
namespace {

using ::testing::HasSubstr;

Result<NpyHeader> parse(std::string_view file) { return parse_npy_header(std::as_bytes(std::span(file))); }

std::string npy(std::string_view dictionary, char version = 1) {
  std::string file("\x93NUMPY", 6);
  file += version;
  file += '\0';
  file += static_cast<char>(dictionary.size() % 256);
  file += static_cast<char>(dictionary.size() / 256);
  if (version == 2) file.append(2, '\0');
  return file.append(dictionary);
}

TEST(NpyHeader, ReadsWhatItWrites) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{1000000, 3, 224}}) {
    const std::string written = npy_header(DataType::kInt64, shape);
    EXPECT_EQ(written.size() % 64, 0u);
    const Result<NpyHeader> read = parse(written);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->type, DataType::kInt64);
    EXPECT_EQ(read->shape, shape);
    EXPECT_EQ(read->data_offset, written.size());
  }
}

TEST(NpyHeader, ReadsBothVersions) {
  constexpr std::string_view kText = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }\n";
  EXPECT_EQ(parse(npy(kText))->data_offset, 10 + kText.size());
  const Result<NpyHeader> second = parse(npy(kText, 2));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->data_offset, 12 + kText.size());
  EXPECT_EQ(second->file_bytes(), 12 + kText.size() + 40);
}

TEST(NpyHeader, WrongFilesAreNamed) {
  const auto error = [](std::string_view file) { return parse(file).status().message(); };
  EXPECT_THAT(error(""), HasSubstr("is no .npy file"));
  EXPECT_THAT(error("PK\x03\x04 something else"), HasSubstr("is no .npy file"));
  EXPECT_THAT(error(npy("{}", 3)), HasSubstr("is no .npy file"));
  EXPECT_THAT(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }").substr(0, 30)),
              HasSubstr("ends within its header"));
  EXPECT_THAT(error(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (5,), }")),
              HasSubstr("type that no tensor has"));
  EXPECT_THAT(error(npy("{'descr': '|O', 'fortran_order': False, 'shape': (5,), }")),
              HasSubstr("type that no tensor has"));
  EXPECT_THAT(error(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (5,), }")), HasSubstr("Fortran's order"));
  EXPECT_THAT(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-5,), }")), HasSubstr("shape"));
  EXPECT_THAT(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }")),
              HasSubstr("shape"));
  EXPECT_THAT(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5")), HasSubstr("shape"));
  std::string long_header = npy("{}", 2);
  long_header[10] = '\x7f';
  EXPECT_THAT(error(long_header), HasSubstr("has a header of"));
}

}  // namespace
}  // namespace foliot

#include "engine/compiler/example_jpeg.h"

#include <gtest/gtest.h>

#include "engine/compiler/example_input.h"
#include "engine/device/cpu/jpeg_decoder.h"

namespace foliot {
namespace {

bool decodes(std::span<const std::byte> jpeg, uint64_t pixels_max) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const JpegTarget target{.width = 8, .height = 8, .pixels_max = pixels_max};
  std::vector<Line> memory(JpegDecoder::memory_bytes(target) / sizeof(Line));
  std::vector<std::byte> image(target.bytes());
  return JpegDecoder().decode(jpeg, target, std::as_writable_bytes(std::span(memory)), image) == JpegError::kNone;
}

TEST(ExampleJpegTest, FillsTheBytes) {
  for (const size_t bytes : {size_t{4} << 10, size_t{32} << 10, size_t{128} << 10}) {
    Random random(1);
    const std::vector<std::byte> jpeg = make_example_jpeg(random, bytes, uint64_t{1} << 24);
    EXPECT_LE(jpeg.size(), bytes);
    EXPECT_GT(jpeg.size(), bytes / 5 * 4);
    EXPECT_TRUE(decodes(jpeg, uint64_t{1} << 24));
  }
}

TEST(ExampleJpegTest, HasAtMostSoManyPixels) {
  Random random(1);
  EXPECT_TRUE(decodes(make_example_jpeg(random, size_t{1} << 20, 100), 100));
}

TEST(ExampleJpegTest, IsEmptyIfNothingFits) {
  Random random(1);
  EXPECT_TRUE(make_example_jpeg(random, 100, 100).empty());
}

TEST(ExampleInputTest, RowsAreJpegsWhereTheyAreDecoded) {
  Graph graph;
  graph.values = {{.name = "bytes", .type = DataType::kUint8, .shape = {2, 2048}},
                  {.name = "image", .type = DataType::kUint8, .shape = {2, 4, 4, 3}}};
  Node node{.kind = OperatorKind::kDecodeJpeg, .name = "decode", .inputs = {0}, .outputs = {1}};
  node.attributes.set("pixels_max", int64_t{5000});
  graph.nodes = {node};
  graph.inputs = {0};
  graph.outputs = {1};
  const std::vector<ExampleValues> values = example_values(graph);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].jpeg_pixels_max, 5000u);
  Random random(1);
  std::vector<std::byte> rows(2 * 2048);
  fill_random(random, DataType::kUint8, values[0], 2, rows);
  for (const size_t row : {0u, 1u}) EXPECT_TRUE(decodes(std::span(rows).subspan(row * 2048, 2048), 5000)) << row;
}

}  // namespace
}  // namespace foliot

#include "engine/device/cpu/jpeg_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/device/conformance/tiny_jpeg.h"

namespace foliot {
namespace {

using testing::Each;
using testing::ElementsAre;

struct alignas(64) Line {
  std::byte bytes[64];
};

class JpegDecoderTest : public testing::Test {
 protected:
  JpegError decode(const std::vector<uint8_t>& jpeg, const JpegTarget& target, size_t memory_bytes) {
    std::vector<Line> memory(memory_bytes / sizeof(Line));
    image_.assign(target.bytes(), std::byte{99});
    return decoder_.decode(std::as_bytes(std::span(jpeg)), target, std::as_writable_bytes(std::span(memory)), image_);
  }
  JpegError decode(const std::vector<uint8_t>& jpeg, const JpegTarget& target) {
    return decode(jpeg, target, JpegDecoder::memory_bytes(target));
  }
  std::vector<int> pixel(const JpegTarget& target, uint32_t x, uint32_t y) const {
    const auto at = image_.begin() + 3 * (y * target.width + x);
    return {static_cast<int>(at[0]), static_cast<int>(at[1]), static_cast<int>(at[2])};
  }

  const std::vector<uint8_t> tiny_{kTinyJpeg.begin(), kTinyJpeg.end()};
  JpegDecoder decoder_;
  std::vector<std::byte> image_;
};

JpegTarget target_of(uint32_t width, uint32_t height, JpegFit fit = JpegFit::kStretch) {
  return {.width = width, .height = height, .fit = fit, .pad_value = 7, .pixels_max = 1000};
}

TEST_F(JpegDecoderTest, DecodesPixelsAsTheyAre) {
  const JpegTarget target = target_of(16, 8);
  ASSERT_EQ(decode(tiny_, target), JpegError::kNone);
  EXPECT_THAT(pixel(target, 0, 0), ElementsAre(200, 30, 30));
  EXPECT_THAT(pixel(target, 7, 7), ElementsAre(200, 30, 30));
  EXPECT_THAT(pixel(target, 8, 0), ElementsAre(29, 30, 200));
}

TEST_F(JpegDecoderTest, MixesAtTheMiddleOnly) {
  const JpegTarget target = target_of(3, 2);
  ASSERT_EQ(decode(tiny_, target), JpegError::kNone);
  EXPECT_THAT(pixel(target, 0, 1)[0], testing::Ge(190));
  EXPECT_THAT(pixel(target, 1, 1), ElementsAre(testing::AllOf(testing::Gt(100), testing::Lt(130)), 30,
                                               testing::AllOf(testing::Gt(100), testing::Lt(130))));
  EXPECT_THAT(pixel(target, 2, 0)[2], testing::Ge(190));
}

TEST_F(JpegDecoderTest, CropsTheMiddle) {
  const JpegTarget wide = target_of(100, 90, JpegFit::kCrop);  // columns 3.6 to 12.4
  ASSERT_EQ(decode(tiny_, wide), JpegError::kNone);
  EXPECT_THAT(pixel(wide, 30, 50), ElementsAre(200, 30, 30));
  EXPECT_THAT(pixel(wide, 70, 50), ElementsAre(29, 30, 200));
  const JpegTarget flat = target_of(64, 4, JpegFit::kCrop);  // all columns
  ASSERT_EQ(decode(tiny_, flat), JpegError::kNone);
  EXPECT_THAT(pixel(flat, 20, 2), ElementsAre(200, 30, 30));
  EXPECT_THAT(pixel(flat, 44, 2), ElementsAre(29, 30, 200));
}

TEST_F(JpegDecoderTest, PadsAboveAndBelow) {
  const JpegTarget target = target_of(8, 7, JpegFit::kPad);  // 8 x 4 of them, from row 1 on
  ASSERT_EQ(decode(tiny_, target), JpegError::kNone);
  for (const uint32_t row : {0u, 5u, 6u}) EXPECT_THAT(pixel(target, 3, row), Each(7)) << row;
  EXPECT_THAT(pixel(target, 0, 1), ElementsAre(200, 30, 30));
  EXPECT_THAT(pixel(target, 7, 4), ElementsAre(29, 30, 200));
}

TEST_F(JpegDecoderTest, PadsLeftAndRight) {
  const JpegTarget target = target_of(8, 2, JpegFit::kPad);
  ASSERT_EQ(decode(tiny_, target), JpegError::kNone);
  for (const uint32_t column : {0u, 1u, 6u, 7u}) EXPECT_THAT(pixel(target, column, 1), Each(7)) << column;
  EXPECT_GT(pixel(target, 2, 1)[0], 100);
}

TEST_F(JpegDecoderTest, IgnoresZerosBehind) {
  std::vector<uint8_t> padded = tiny_;
  padded.resize(4096);
  EXPECT_EQ(decode(padded, target_of(16, 8)), JpegError::kNone);
}

TEST_F(JpegDecoderTest, RefusesWhatIsCutOff) {
  for (size_t size = 0; size < tiny_.size(); ++size) {
    std::vector<uint8_t> cut(tiny_.begin(), tiny_.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(decode(cut, target_of(16, 8)), JpegError::kDamaged) << size;
    cut.resize(4096);
    EXPECT_EQ(decode(cut, target_of(16, 8)), JpegError::kDamaged) << size << ", and zeros";
  }
}

TEST_F(JpegDecoderTest, RefusesWhatLacksDataBeforeItsEnd) {
  std::vector<uint8_t> shorter = tiny_;
  shorter.erase(shorter.end() - 7, shorter.end() - 2);
  EXPECT_EQ(decode(shorter, target_of(16, 8)), JpegError::kDamaged);
}

TEST_F(JpegDecoderTest, GoesOnAfterErrors) {
  const JpegTarget target = target_of(16, 8);
  for (size_t at = 0; at < tiny_.size(); ++at) {
    std::vector<uint8_t> damaged = tiny_;
    damaged[at] ^= 0xff;
    (void)decode(damaged, target);
    ASSERT_EQ(decode(tiny_, target), JpegError::kNone) << at;
    ASSERT_THAT(pixel(target, 15, 7), ElementsAre(29, 30, 200)) << at;
  }
}

TEST_F(JpegDecoderTest, ForgetsTheTablesOfTheOneBefore) {
  ASSERT_EQ(decode(tiny_, target_of(16, 8)), JpegError::kNone);
  std::vector<uint8_t> without;
  for (size_t at = 0; at < tiny_.size(); ++at) {
    // Segments of quantisation tables: marker, length of two bytes, content.
    if (tiny_[at] == 0xff && at + 1 < tiny_.size() && tiny_[at + 1] == 0xdb) {
      at += size_t{1} + tiny_[at + 2] * 256u + tiny_[at + 3];
    } else {
      without.push_back(tiny_[at]);
    }
  }
  ASSERT_LT(without.size(), tiny_.size());
  EXPECT_EQ(decode(without, target_of(16, 8)), JpegError::kDamaged);
}

TEST_F(JpegDecoderTest, RefusesTooManyPixels) {
  JpegTarget target = target_of(4, 4);
  target.pixels_max = 16 * 8 - 1;
  EXPECT_EQ(decode(tiny_, target), JpegError::kTooLarge);
  target.pixels_max = 16 * 8;
  EXPECT_EQ(decode(tiny_, target), JpegError::kNone);
}

TEST_F(JpegDecoderTest, StaysWithinItsMemory) {
  const JpegTarget target = target_of(16, 8);
  size_t needed = 0;
  for (; decode(tiny_, target, needed) != JpegError::kNone; needed += 64) {
    ASSERT_EQ(decode(tiny_, target, needed), JpegError::kMemory) << needed;
  }
  EXPECT_LT(needed, JpegDecoder::memory_bytes(target));
}

TEST(JpegFitTest, HasNames) {
  EXPECT_EQ(parse_jpeg_fit("crop"), JpegFit::kCrop);
  EXPECT_EQ(parse_jpeg_fit("fill"), std::nullopt);
}

}  // namespace
}  // namespace foliot

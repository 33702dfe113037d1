// JpegDecoder: decodes a JPEG into an RGB image of a wanted size, in memory that is given.
//
// The part of the image that is wanted, which is a rectangle of pixels, possibly fractions:
//   stretch  all of it, for the whole result
//   crop     the largest part of the result's proportions, from the middle
//   pad      all of it, for the largest part of the result that has its proportions, in the
//            middle (begin rounded down), rounded to whole pixels; the rest has pad_value
// The JPEG is decoded at 1/8, 1/4, 1/2 or all of its size: the smallest whose part is not
// below what it becomes, in both dimensions. That part is resized with a triangle filter whose
// width is two pixels of the result, or of the image if it is enlarged: first along rows, then
// along columns, rounded to 8 bits after each; weights have 22 binary digits. This is what
// Pillow does by draft() and resize(..., BILINEAR, box), within one level with the same libjpeg-turbo.
// Orientation and colour profile (Exif, ICC) have no effect.
//
// All that a decoding needs lies in `memory`, from which libjpeg allocates too: no other
// allocation, no system call. One that needs more fails. Nothing of one JPEG is left for the
// next: not its tables, nor an error.
//
// Input comes from outside; duration is bounded by the limits here. Sizes are checked before
// anything is decoded. A JPEG may be followed by zeros, and has to be whole: up to its end
// marker, without errors that libjpeg would tolerate. Colours: RGB, YCbCr or grey.
//
// Threading: one thread at a time.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_JPEG_DECODER_H_
#define FOLIOT_ENGINE_DEVICE_CPU_JPEG_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace foliot {

enum class JpegFit : uint8_t { kStretch, kCrop, kPad };
std::optional<JpegFit> parse_jpeg_fit(std::string_view name);  // "stretch"

struct JpegTarget {
  uint32_t width = 0;
  uint32_t height = 0;
  JpegFit fit = JpegFit::kStretch;
  uint8_t pad_value = 0;
  uint64_t pixels_max = 0;  // of the JPEG

  // RGB, row-major.
  uint64_t bytes() const { return uint64_t{3} * width * height; }
};

enum class JpegError : uint8_t {
  kNone,
  kDamaged,   // no JPEG, or not all of one
  kTooLarge,  // more than pixels_max pixels, or kJpegScansMax scans
  kColours,   // CMYK
  kMemory,    // needs more than is given: progressive ones need 3 to 6 bytes for each pixel
};

// Of a progressive JPEG; encoders make about ten.
inline constexpr int kJpegScansMax = 32;

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Fills `image`; after an error its content is undefined. REQUIRES: `memory` is aligned to
  // 64 bytes; image.size() == target.bytes() > 0.
  JpegError decode(std::span<const std::byte> jpeg, const JpegTarget& target, std::span<std::byte> memory,
                   std::span<std::byte> image);

  // Enough for all JPEGs of pixels_max but for progressive ones: for those with half of the
  // pixels, or a quarter without chroma subsampling.
  static uint64_t memory_bytes(const JpegTarget& target);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_JPEG_DECODER_H_

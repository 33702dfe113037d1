#include "engine/compiler/example_jpeg.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

// jpeglib.h needs what cstdio declares.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace foliot {
namespace {

// A square of waves and noise. libjpeg's own error handling ends the process: no input here
// comes from outside.
std::vector<std::byte> encode(Random random, uint32_t side) {
  constexpr int kQuality = 85;
  constexpr double kNoise = 24;
  jpeg_compress_struct compress{};
  jpeg_error_mgr errors{};
  compress.err = jpeg_std_error(&errors);
  jpeg_create_compress(&compress);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&compress, &bytes, &size);
  compress.image_width = compress.image_height = side;
  compress.input_components = 3;
  compress.in_color_space = JCS_RGB;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, kQuality, TRUE);
  jpeg_start_compress(&compress, TRUE);
  const double phase = random.uniform() * 8;
  std::vector<double> across(size_t{side} * 3);
  for (size_t i = 0; i < across.size(); ++i) {
    across[i] = 128 + 50 * std::sin(phase + 0.05 * static_cast<double>(i / 3) + static_cast<double>(i % 3));
  }
  std::vector<JSAMPLE> row(across.size());
  for (uint32_t y = 0; y < side; ++y) {
    const double down = 50 * std::sin(phase - 0.03 * y);
    for (size_t x = 0; x < side; ++x) {
      const double level = down + (random.uniform() - 0.5) * kNoise;
      for (size_t i = 3 * x; i < 3 * x + 3; ++i) {
        row[i] = static_cast<JSAMPLE>(std::clamp(across[i] + level, 0.0, 255.0));
      }
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&compress, rows, 1);
  }
  jpeg_finish_compress(&compress);
  std::vector<std::byte> result(size);
  std::transform(bytes, bytes + size, result.begin(), [](unsigned char byte) { return std::byte{byte}; });
  jpeg_destroy_compress(&compress);
  std::free(bytes);
  return result;
}

}  // namespace

std::vector<std::byte> make_example_jpeg(Random& random, size_t bytes_max, uint64_t pixels_max) {
  constexpr double kSampleSide = 128, kHeaderBytes = 640, kShare = 0.95;
  constexpr double kSideMax = 4096;  // takes half a second
  const Random own(random.below(1 << 30));
  const double sample = static_cast<double>(encode(own, static_cast<uint32_t>(kSampleSide)).size()) - kHeaderBytes;
  const double fitting = std::max(static_cast<double>(bytes_max) - kHeaderBytes, 0.0) * kShare / sample;
  double side = std::min({std::sqrt(fitting) * kSampleSide, std::sqrt(static_cast<double>(pixels_max)), kSideMax});
  for (; side >= 1; side *= kShare) {
    std::vector<std::byte> jpeg = encode(own, static_cast<uint32_t>(side));
    if (jpeg.size() <= bytes_max) return jpeg;
  }
  return {};
}

}  // namespace foliot

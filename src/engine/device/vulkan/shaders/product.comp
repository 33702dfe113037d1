#version 460
#include "common.glsl"

// Y[b, m, n] = finish(alpha * sum over k of A[b, m, k] * B[b, k, n] + bias[n]). An invocation makes kRows x 4 results.
layout(constant_id = 16) const uint kRows = 4;
layout(constant_id = 17) const bool kTurnA = false;
layout(constant_id = 18) const bool kTurnB = false;
layout(constant_id = 19) const bool kHasBias = false;
layout(constant_id = 20) const float kAlpha = 1;
layout(constant_id = 21) const bool kPacked = false;  // B as [N / 4, K, 4]: PackedColumns

// words: 5 M, 6 N, 7 K, 8 batch extents (3), 11 strides of A (3), 14 of B (3).
void main() {
  const uint m_count = words[5], n_count = words[6], k_count = words[7];
  const uint tiles_n = (n_count + 3) / 4, tiles_m = (m_count + kRows - 1) / kRows;
  uint tile = linear_index();
  const uint n0 = tile % tiles_n * 4;
  tile /= tiles_n;
  const uint m0 = tile % tiles_m * kRows;
  const uint batch = tile / tiles_m;
  if (batch >= words[8] * words[9] * words[10]) return;
  const uint b2 = batch % words[10], b1 = batch / words[10] % words[9], b0 = batch / words[10] / words[9];
  const uint a_at = b0 * words[11] + b1 * words[12] + b2 * words[13];
  const uint b_at = b0 * words[14] + b1 * words[15] + b2 * words[16];
  const uint a_row = kTurnA ? 1 : k_count, a_step = kTurnA ? m_count : 1;
  const uint b_step = kTurnB ? 1 : n_count, b_column = kTurnB ? k_count : 1;
  // Rows and columns beyond the end repeat the last one, and are not stored.
  uint rows[8];
  for (uint r = 0; r < kRows; ++r) rows[r] = a_at + min(m0 + r, m_count - 1) * a_row;
  uvec4 columns;
  for (uint c = 0; c < 4; ++c) columns[c] = b_at + min(n0 + c, n_count - 1) * b_column;
  vec4 sums[8];
  for (uint r = 0; r < kRows; ++r) sums[r] = vec4(0);
  for (uint k = 0; k < k_count; ++k) {
    vec4 b;
    if (kPacked) {
      b = Float4(address_of(kPlace1, words[1], 4 * (n0 * k_count + 4 * k))).value;
    } else {
      for (uint c = 0; c < 4; ++c) b[c] = load1(columns[c] + k * b_step);
    }
    for (uint r = 0; r < kRows; ++r) sums[r] += load0(rows[r] + k * a_step) * b;
  }
  for (uint r = 0; r < kRows && m0 + r < m_count; ++r) {
    for (uint c = 0; c < 4 && n0 + c < n_count; ++c) {
      const uint index = (batch * m_count + m0 + r) * n_count + n0 + c;
      float y = kAlpha == 1 ? sums[r][c] : kAlpha * sums[r][c];
      if (kHasBias) y += load2(n0 + c);
      store4(index, finish(y, index, n0 + c));
    }
  }
}

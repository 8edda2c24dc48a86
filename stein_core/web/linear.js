// Linear algebra on matrices in row-major order: entry (r, c) of one is x[i + r n + c]. Sums are in float64.
function cholesky(x, i, to, o, n) {
  for (let r = 0; r < n; r++)
    for (let c = 0; c < n; c++) {
      let t = x[i + r * n + c];
      for (let k = 0; k < Math.min(r, c); k++) t -= to[o + r * n + k] * to[o + c * n + k];
      to[o + r * n + c] = c > r ? 0 : c === r ? Math.sqrt(t) : t / to[o + c * n + c]; // NaN if it is not positive
    }
}

// PA = LU, with pivots in each column and the permutation of the rows, as LAPACK's getrf.
function lu(x, i, to, o, pivots, op, rows, or, n) {
  const a = new Float64Array(n * n);
  for (let k = 0; k < n * n; k++) a[k] = x[i + k];
  for (let r = 0; r < n; r++) rows[or + r] = r;
  for (let c = 0; c < n; c++) {
    let best = c;
    for (let r = c + 1; r < n; r++) if (Math.abs(a[r * n + c]) > Math.abs(a[best * n + c])) best = r;
    pivots[op + c] = best;
    if (best !== c) {
      for (let k = 0; k < n; k++) [a[c * n + k], a[best * n + k]] = [a[best * n + k], a[c * n + k]];
      [rows[or + c], rows[or + best]] = [rows[or + best], rows[or + c]];
    }
    for (let r = c + 1; r < n; r++) {
      const f = (a[r * n + c] /= a[c * n + c]);
      if (f) for (let k = c + 1; k < n; k++) a[r * n + k] -= f * a[c * n + k];
    }
  }
  for (let k = 0; k < n * n; k++) to[o + k] = a[k];
}

// Solve op(A) X = B, or X op(A) = B if A is on the right; B (n, m), or (m, n), is overwritten.
function solveTriangle(a, i, b, o, n, m, left, lower, transposed, unit) {
  const at = (r, c) => a[i + (transposed ? c * n + r : r * n + c)];
  const forward = (lower !== transposed) === left;
  const sum = new Float64Array(n);
  for (let c = 0; c < m; c++) {
    const place = (r) => o + (left ? r * m + c : c * n + r);
    for (let s = 0; s < n; s++) {
      const r = forward ? s : n - 1 - s;
      let t = b[place(r)];
      for (let k = 0; k < s; k++) {
        const q = forward ? k : n - 1 - k;
        t -= (left ? at(r, q) : at(q, r)) * sum[q];
      }
      sum[r] = unit ? t : t / at(r, r);
    }
    for (let r = 0; r < n; r++) b[place(r)] = sum[r];
  }
}

// Eigenvalues in ascending order and eigenvectors, as columns, of a symmetric matrix: cyclic Jacobi rotations.
function eigh(x, i, v, ov, w, ow, n) {
  const a = new Float64Array(n * n), q = new Float64Array(n * n);
  let size = 0;
  for (let r = 0; r < n; r++)
    for (let c = 0; c < n; c++) {
      a[r * n + c] = (x[i + r * n + c] + x[i + c * n + r]) / 2;
      size += a[r * n + c] ** 2;
      q[r * n + c] = r === c ? 1 : 0;
    }
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let r = 0; r < n; r++) for (let c = 0; c < r; c++) off += a[r * n + c] ** 2;
    if (!(off > 1e-30 * size)) break;
    for (let r = 1; r < n; r++)
      for (let c = 0; c < r; c++) {
        if (a[r * n + c] === 0) continue;
        const tau = (a[r * n + r] - a[c * n + c]) / (2 * a[r * n + c]);
        const t = (tau >= 0 ? 1 : -1) / (Math.abs(tau) + Math.sqrt(1 + tau * tau));
        const cos = 1 / Math.sqrt(1 + t * t), sin = t * cos;
        for (let k = 0; k < n; k++) {
          const one = a[k * n + c], other = a[k * n + r];
          a[k * n + c] = cos * one - sin * other;
          a[k * n + r] = sin * one + cos * other;
        }
        for (let k = 0; k < n; k++) {
          const one = a[c * n + k], other = a[r * n + k];
          a[c * n + k] = cos * one - sin * other;
          a[r * n + k] = sin * one + cos * other;
        }
        for (let k = 0; k < n; k++) {
          const one = q[k * n + c], other = q[k * n + r];
          q[k * n + c] = cos * one - sin * other;
          q[k * n + r] = sin * one + cos * other;
        }
      }
  }
  const places = Array.from({ length: n }, (_, k) => k).sort((r, c) => a[r * n + r] - a[c * n + c]);
  places.forEach((from, k) => {
    w[ow + k] = a[from * n + from];
    for (let r = 0; r < n; r++) v[ov + r * n + k] = q[r * n + from];
  });
}

// The thin QR of (rows, columns) by Householder reflections, with LAPACK's signs.
function qr(x, i, q, oq, r, or, rows, columns) {
  const a = new Float64Array(rows * columns), taus = new Float64Array(columns);
  for (let k = 0; k < rows * columns; k++) a[k] = x[i + k];
  for (let c = 0; c < columns; c++) {
    let tail = 0;
    for (let k = c + 1; k < rows; k++) tail += a[k * columns + c] ** 2;
    const first = a[c * columns + c];
    if (tail === 0) continue;
    const beta = -Math.sign(first || 1) * Math.sqrt(first * first + tail);
    taus[c] = (beta - first) / beta;
    for (let k = c + 1; k < rows; k++) a[k * columns + c] /= first - beta;
    a[c * columns + c] = beta;
    for (let d = c + 1; d < columns; d++) reflect(a, columns, c, d, rows, a, taus[c]);
  }
  const full = new Float64Array(rows * columns);
  for (let c = 0; c < columns; c++) full[c * columns + c] = 1;
  for (let c = columns - 1; c >= 0; c--) for (let d = 0; d < columns; d++) reflect(a, columns, c, d, rows, full, taus[c]);
  for (let k = 0; k < rows * columns; k++) q[oq + k] = full[k];
  for (let s = 0; s < columns; s++)
    for (let c = 0; c < columns; c++) r[or + s * columns + c] = c < s ? 0 : a[s * columns + c];
}
function reflect(a, columns, c, d, rows, to, tau) {
  let t = to[c * columns + d];
  for (let k = c + 1; k < rows; k++) t += a[k * columns + c] * to[k * columns + d];
  t *= tau;
  to[c * columns + d] -= t;
  for (let k = c + 1; k < rows; k++) to[k * columns + d] -= t * a[k * columns + c];
}

// What translated programs call: float32 rounding, bits, random numbers and special functions.
const F = Math.fround, T = new Uint32Array(2), bitsF = new Float32Array(1), bitsI = new Int32Array(bitsF.buffer);
const ibits = (x) => { bitsF[0] = x; return bitsI[0]; };
const fbits = (x) => { bitsI[0] = x; return bitsF[0]; };
const sq = (x) => F(x * x);
const roundEven = (x) => { const r = Math.round(x); return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r; };
const order = (a, b) => (a < b || (b !== b && a === a) ? -1 : a > b || (a !== a && b === b) ? 1 : 0); // NaN last

function ipow(x, n) {
  let y = 1;
  for (let k = Math.abs(n); k; k >>= 1, x = F(x * x)) if (k & 1) y = F(y * x);
  return n < 0 ? F(1 / y) : y;
}

// Threefry-2x32 of 20 rounds (Salmon et al. 2011), the generator of JAX; the two words are left in T.
const TURNS = [[13, 15, 26, 6], [17, 29, 16, 24]];
function threefry(k0, k1, x0, x1) {
  const k2 = k0 ^ k1 ^ 0x1bd11bda, keys = [k0, k1, k2];
  x0 = (x0 + k0) | 0;
  x1 = (x1 + k1) | 0;
  for (let i = 0; i < 5; i++) {
    const turns = TURNS[i & 1];
    for (let r = 0; r < 4; r++) {
      x0 = (x0 + x1) | 0;
      x1 = ((x1 << turns[r]) | (x1 >>> (32 - turns[r]))) ^ x0;
    }
    x0 = (x0 + keys[(i + 1) % 3]) | 0;
    x1 = (x1 + keys[(i + 2) % 3] + i + 1) | 0;
  }
  T[0] = x0;
  T[1] = x1;
}

// The inverse error function in float32 (Giles 2010), with XLA's order of operations: draws are the same to the last bit
// or two.
const NEAR = [2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503,
  -0.00417768164, 0.246640727, 1.50140941];
const FAR = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
  0.00943887047, 1.00167406, 2.83297682];
function horner(w, c) {
  let p = F(c[0]);
  for (let i = 1; i < c.length; i++) p = F(F(c[i]) + F(p * w));
  return p;
}
function erfInv(x) {
  const w = F(-Math.log1p(F(-x * x)));
  return F(x * (w < 5 ? horner(F(w - 2.5), NEAR) : horner(F(F(Math.sqrt(w)) - 3), FAR)));
}

// erfc by its continued fraction (Lentz) beyond 2, and erf by its series below: both are exact to 1e-15.
function erfcTail(x) {
  let f = x, c = x, d = 0;
  for (let k = 1; k < 200; k++) {
    d = 1 / (x + (k / 2) * d);
    c = x + k / 2 / c;
    const step = c * d;
    f *= step;
    if (Math.abs(step - 1) < 1e-16) break;
  }
  return Math.exp(-x * x) / f / Math.sqrt(Math.PI);
}
function erf(x) {
  if (Math.abs(x) > 2) return Math.sign(x) * (1 - erfcTail(Math.abs(x)));
  let term = x, sum = x;
  for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
    term *= (-x * x) / k;
    sum += term / (2 * k + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
const erfc = (x) => (x > 2 ? erfcTail(x) : 1 - erf(x));

// Stirling's series after the argument was raised above 8.
function lgamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lgamma(1 - x);
  let product = 1;
  for (; x < 8; x++) product *= x;
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - Math.log(product);
}
function digamma(x) {
  if (x < 0.5) return digamma(1 - x) - Math.PI / Math.tan(Math.PI * x);
  let sum = 0;
  for (; x < 8; x++) sum -= 1 / x;
  const y = 1 / (x * x);
  return sum + Math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))));
}

/** SHA-256 of bytes that arrive one after the other: the browser's own takes them all at once, and on HTTPS alone. */

const K = new Uint32Array(64);
const START = new Uint32Array(8);
// FIPS 180-4: the first 32 bits of the fractions of the cube roots, and the square roots, of the first primes.
const fraction = (root: number): number => Math.floor((root - Math.floor(root)) * 2 ** 32);
for (let number = 2, found = 0; found < 64; number++) {
  let prime = true;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) prime = false;
  if (!prime) continue;
  if (found < 8) START[found] = fraction(Math.sqrt(number));
  K[found++] = fraction(Math.cbrt(number));
}

export class Sha256 {
  private readonly state = START.slice();
  private readonly rest = new Uint8Array(64);
  private readonly schedule = new Uint32Array(64);
  private waiting = 0;
  private count = 0;

  update(data: Uint8Array): this {
    this.count += data.length;
    let at = 0;
    if (this.waiting > 0) {
      at = Math.min(64 - this.waiting, data.length);
      this.rest.set(data.subarray(0, at), this.waiting);
      this.waiting += at;
      if (this.waiting < 64) return this;
      this.block(this.rest, 0);
      this.waiting = 0;
    }
    for (; at + 64 <= data.length; at += 64) this.block(data, at);
    this.rest.set(data.subarray(at));
    this.waiting = data.length - at;
    return this;
  }

  /** The digest in hexadecimal; nothing may be added afterwards. */
  digest(): string {
    const bits = this.count * 8;
    const end = new Uint8Array(this.waiting < 56 ? 64 - this.waiting : 128 - this.waiting);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(end.length - 4, bits % 2 ** 32);
    this.update(end);
    return [...this.state].map((word) => word.toString(16).padStart(8, '0')).join('');
  }

  private block(data: Uint8Array, at: number): void {
    const w = this.schedule;
    for (let i = 0; i < 16; i++, at += 4) w[i] = (data[at]! << 24) | (data[at + 1]! << 16) | (data[at + 2]! << 8) | data[at + 3]!;
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
    }
    const s = this.state;
    let [a, b, c, d, e, f, g, h] = s as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (s[i] = s[i]! + word));
  }
}

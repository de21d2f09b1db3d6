// The memory of the kernel, handed out from below and taken back all at once.

const PAGE = 65_536
/** The kernel reads ahead by up to 48 bytes. */
const AHEAD = 64

export class KernelMemory {
  readonly memory = new WebAssembly.Memory({ initial: 16 })
  #top = 1024
  #bytes = new Uint8Array(this.memory.buffer)
  #words = new Int32Array(this.memory.buffer)

  /** How much is in use; `release` goes back to it. */
  get mark(): number {
    return this.#top
  }

  release(mark: number): void {
    this.#top = mark
  }

  /** The address of so many bytes, aligned to 16. Views that were taken before are stale afterwards. */
  take(length: number): number {
    const at = this.#top
    this.#top = Math.ceil((at + length + AHEAD) / 16) * 16
    const missing = this.#top - this.memory.buffer.byteLength
    if (missing > 0) {
      this.memory.grow(Math.ceil(missing / PAGE))
      this.#bytes = new Uint8Array(this.memory.buffer)
      this.#words = new Int32Array(this.memory.buffer)
    }
    return at
  }

  put(bytes: Uint8Array): number {
    const at = this.take(bytes.length)
    this.#bytes.set(bytes, at)
    return at
  }

  get bytes(): Uint8Array {
    return this.#bytes
  }

  get words(): Int32Array {
    return this.#words
  }
}

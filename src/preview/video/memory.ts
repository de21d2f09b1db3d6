// The memory of the kernel. What is used for one frame is handed out from the top and taken back all at once; what lives
// longer is given back piece by piece, and taken again by whoever wants as much: the layers of all shots have few sizes.

const PAGE = 65_536
/** The kernel reads ahead by up to 48 bytes. */
const AHEAD = 64

/** `length` with what the kernel may read behind it; whatever follows is aligned to 16. */
export const withRoom = (length: number): number => Math.ceil((length + AHEAD) / 16) * 16

export class KernelMemory {
  readonly memory = new WebAssembly.Memory({ initial: 16 })
  readonly #free = new Map<number, number[]>()
  #top = 1024
  #bytes = new Uint8Array(this.memory.buffer)
  #words = new Int32Array(this.memory.buffer)

  /** How much is in use; `release` goes back to it. Nothing may be taken in between, only pushed. */
  get mark(): number {
    return this.#top
  }

  release(mark: number): void {
    this.#top = mark
  }

  /** The address of so many bytes, aligned to 16, until it is given back. */
  take(length: number): number {
    return this.#free.get(length)?.pop() ?? this.push(length)
  }

  /** The same, until the next release. `bytes` and `words` of before are stale afterwards. */
  push(length: number): number {
    const at = this.#top
    this.#top += withRoom(length)
    const missing = this.#top - this.memory.buffer.byteLength
    if (missing > 0) {
      this.memory.grow(Math.ceil(missing / PAGE))
      this.#bytes = new Uint8Array(this.memory.buffer)
      this.#words = new Int32Array(this.memory.buffer)
    }
    return at
  }

  /** Gives back what was taken; what it holds stays until it is taken again. */
  giveBack(at: number, length: number): void {
    const free = this.#free.get(length)
    if (free === undefined) this.#free.set(length, [at])
    else free.push(at)
  }

  get bytes(): Uint8Array {
    return this.#bytes
  }

  get words(): Int32Array {
    return this.#words
  }
}

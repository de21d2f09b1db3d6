/** What comes in faster than it is taken, in order and in bounds. */

/** More than this does not wait here: the sender is asked to hold. */
const MOST_BYTES = 262_144

export interface InflowOptions {
  /** Ask the sender to send no more for now. */
  hold(): void
  goOn(): void
  /** Nobody takes the rest. */
  leave(): void
}

export interface Inflow {
  /** Iterate once. Throws what `fail` was given, after all that came before it; one that is left early is not taken any further. */
  readonly chunks: AsyncIterable<Uint8Array>
  push(chunk: Uint8Array): void
  end(): void
  fail(error: unknown): void
}

export function createInflow({ hold, goOn, leave }: InflowOptions): Inflow {
  const waiting: Uint8Array[] = []
  let bytes = 0
  let holding = false
  let ending: { readonly error?: unknown } | undefined
  let wake = () => {}

  function take(): Uint8Array | undefined {
    const chunk = waiting.shift()
    bytes -= chunk?.byteLength ?? 0
    if (holding && bytes < MOST_BYTES / 2) {
      holding = false
      goOn()
    }
    return chunk
  }

  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = take()
        if (chunk !== undefined) yield chunk
        else if (ending === undefined)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        else if ('error' in ending) throw ending.error
        else return
      }
    } finally {
      if (ending === undefined) leave()
    }
  }

  function close(how: { readonly error?: unknown }): void {
    ending ??= how
    wake()
  }

  return {
    chunks: chunks(),
    push(chunk) {
      waiting.push(chunk)
      bytes += chunk.byteLength
      if (!holding && bytes >= MOST_BYTES) {
        holding = true
        hold()
      }
      wake()
    },
    end: () => close({}),
    fail: (error) => close({ error }),
  }
}

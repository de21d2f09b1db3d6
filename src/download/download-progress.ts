/** How far a set of downloads is. Adding up is all that happens here per chunk; drawing is the listener's. */
export interface Progress {
  readonly receivedBytes: number
  /** Known once the host of every file has declared a length. */
  readonly totalBytes: number | undefined
  /** Files that are in place, or were given up. */
  readonly filesDone: number
  readonly files: number
}

/** One file's part in it. */
export interface Meter {
  /** A new try begins at nothing. */
  restart(): void
  expect(bytes: number | undefined): void
  receive(bytes: number): void
  end(): void
}

/** Gives one meter per call, for as many files as there are. `listener` is called for every chunk: let it be quick. */
export function createProgress(files: number, listener?: (progress: Progress) => void): () => Meter {
  let receivedBytes = 0
  let expectedBytes = 0
  let filesExpected = 0
  let filesDone = 0
  const tell = () =>
    listener?.({
      receivedBytes,
      totalBytes: filesExpected === files ? expectedBytes : undefined,
      filesDone,
      files,
    })

  return () => {
    let received = 0
    let expected: number | undefined
    const receive = (bytes: number): void => {
      received += bytes
      receivedBytes += bytes
      tell()
    }
    const expect = (bytes: number | undefined): void => {
      filesExpected += (bytes === undefined ? 0 : 1) - (expected === undefined ? 0 : 1)
      expectedBytes += (bytes ?? 0) - (expected ?? 0)
      expected = bytes
      tell()
    }
    return {
      receive,
      expect,
      restart() {
        if (received > 0) receive(-received)
      },
      end() {
        filesDone += 1
        // Nothing more comes, also when it was given up.
        expect(received)
      },
    }
  }
}

/** The progress of a set of downloads. The listener is called for every chunk. */
export interface DownloadProgress {
  readonly receivedBytes: number
  /** Known once every host has declared a length. */
  readonly totalBytes: number | undefined
  /** Files that are complete or failed. */
  readonly filesDone: number
  readonly files: number
}

/** The progress of one file. */
export interface FileMeter {
  /** A new attempt starts from zero. */
  restart(): void
  expect(bytes: number | undefined): void
  receive(bytes: number): void
  end(): void
}

/** Returns a function that creates the meter of each file. `listener` should be fast. */
export function createProgress(
  files: number,
  listener?: (progress: DownloadProgress) => void,
): () => FileMeter {
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
        // The total is now what was received, also for a failed file.
        expect(received)
      },
    }
  }
}

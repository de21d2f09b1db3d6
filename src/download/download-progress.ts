/** Total progress of several downloads. */
export interface DownloadProgress {
  readonly receivedBytes: number
  /** Undefined until all hosts have declared a length. */
  readonly totalBytes: number | undefined
  /** Number of files that are complete or have failed. */
  readonly filesDone: number
  readonly files: number
}

/** Counts the progress of one file. */
export interface FileMeter {
  /** Resets the count for a new attempt. */
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
  const notify = () =>
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
      notify()
    }
    const expect = (bytes: number | undefined): void => {
      filesExpected += (bytes === undefined ? 0 : 1) - (expected === undefined ? 0 : 1)
      expectedBytes += (bytes ?? 0) - (expected ?? 0)
      expected = bytes
      notify()
    }
    return {
      receive,
      expect,
      restart() {
        if (received > 0) receive(-received)
      },
      end() {
        filesDone += 1
        // A failed file counts as complete too, with the bytes that it has received.
        expect(received)
      },
    }
  }
}

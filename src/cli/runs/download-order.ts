/** Names count over the outputs of all runs of a command, so with a template downloads begin in the order of the runs. */

export interface DownloadOrder {
  /** Begins the work when the work of every run before it has begun, or was skipped. */
  begin<Result>(index: number, work: () => Promise<Result>): Promise<Result>
  skip(index: number): void
}

export function createDownloadOrder(runs: number): DownloadOrder {
  const begun = Array.from({ length: runs }, () => {
    let resolve = () => {}
    const promise = new Promise<void>((settle) => {
      resolve = settle
    })
    return { promise, resolve }
  })
  return {
    async begin(index, work) {
      await begun[index - 1]?.promise
      const result = work()
      begun[index]?.resolve()
      return result
    },
    skip: (index) => begun[index]?.resolve(),
  }
}

export interface DownloadOrder {
  /** Starts the work once the work of each earlier run has started or was skipped. */
  begin<Result>(index: number, work: () => Promise<Result>): Promise<Result>
  skip(index: number): void
}

/** Starts downloads in the order of the runs, because file names are numbered across all runs of a command. */
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

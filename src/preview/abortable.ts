// Native work (libvips drawing or compressing a 4K picture takes up to a second) cannot be stopped halfway.

/** The work's result, or the signal's reason as soon as it is aborted; what the work then still yields is dropped. */
export function abortable<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** The renderer's process ended before its job. That may have nothing to do with the run, which is retried a few times. */
export class RendererCrashed extends Error {
  override readonly name = 'RendererCrashed'
  /** For the owner of the run only: it may contain the prompt, so it is never logged. */
  readonly stderrTail: string

  constructor(message: string, stderrTail = '') {
    super(message)
    this.stderrTail = stderrTail
  }
}

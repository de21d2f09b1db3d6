/** The renderer's process ended before its job. That may have nothing to do with the run, which is retried a few times. */
export class RendererCrashed extends Error {
  override readonly name = 'RendererCrashed'
  readonly #stderrTail: string

  /** The message is logged; `stderrTail` is not. */
  constructor(message: string, stderrTail = '') {
    super(message)
    this.#stderrTail = stderrTail
  }

  /**
   * For the owner of the run only, since it may contain the prompt or secrets. Private, so that no logger finds it among the
   * properties of the error.
   */
  get stderrTail(): string {
    return this.#stderrTail
  }
}

/** The service stops, so no renderer is started, and those that work are ended. */
export class RendererClosed extends RendererCrashed {
  constructor() {
    super('the renderer is closed')
  }
}

/** The service ended the renderer. The run fails at once: the same input would need as much memory again. */
export class TooMuchMemory extends Error {
  override readonly name = 'TooMuchMemory'

  constructor(maxBytes: number) {
    super(`The renderer needed more than ${Math.round(maxBytes / 1_048_576)} MiB of memory.`)
  }
}

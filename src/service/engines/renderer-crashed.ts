/** The renderer is gone, for a reason that may have nothing to do with the run: it is tried again, a few times. */
export class RendererDied extends Error {
  override readonly name = 'RendererDied'
  /** For whoever made the run. They may hold its prompt, so no log has them. */
  readonly lastWords: string

  constructor(message: string, lastWords = '') {
    super(message)
    this.lastWords = lastWords
  }
}

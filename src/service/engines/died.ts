/** The renderer is gone, for a reason that may have nothing to do with the run: it is tried again, a few times. */
export class RendererDied extends Error {
  override readonly name = 'RendererDied'
}

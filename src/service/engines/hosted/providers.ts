/** Where the hosted providers are, and which variable has the key of their users. */
export interface Provider {
  /** Its name in messages. */
  readonly title: string
  /** Where runs are created, unless the document has a `url`. Undefined: a document needs one. */
  readonly url?: string
  /** Base of its other endpoints: models and prices. */
  readonly api?: string
  /** Where files are uploaded. */
  readonly uploads?: string
  readonly keyVariable?: string
  /** First word of the header `authorization`. */
  readonly scheme: 'Bearer' | 'Key'
  /** Whether every run is charged. */
  readonly isPaid: boolean
}

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  fal: {
    title: 'fal',
    url: 'https://queue.fal.run',
    api: 'https://api.fal.ai/v1',
    uploads: 'https://rest.fal.ai',
    keyVariable: 'FAL_KEY',
    scheme: 'Key',
    isPaid: true,
  },
  replicate: {
    title: 'Replicate',
    url: 'https://api.replicate.com/v1',
    api: 'https://api.replicate.com/v1',
    keyVariable: 'REPLICATE_API_TOKEN',
    scheme: 'Bearer',
    isPaid: true,
  },
  openrouter: {
    title: 'OpenRouter',
    url: 'https://openrouter.ai/api/v1',
    api: 'https://openrouter.ai/api/v1',
    keyVariable: 'OPENROUTER_API_KEY',
    scheme: 'Bearer',
    isPaid: true,
  },
  cog: { title: 'Cog', scheme: 'Bearer', isPaid: false },
}

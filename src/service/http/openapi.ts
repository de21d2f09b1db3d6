/** The API as an OpenAPI document, which `npm run docs` makes. Loaded at the first request: most services never get one. */
import source from '../../../docs/openapi.json?raw'

/** URL of the service in the source. */
const SOURCE_URL = 'http://127.0.0.1:7878'

export const openapiText = (baseUrl: string): string => source.replaceAll(SOURCE_URL, baseUrl)

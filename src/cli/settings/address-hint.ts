/** `rushes` adds `/api/v1` to the service address; people often copy an address that includes it. */
const API_PATH = /\/api(\/v1(\/runs)?)?$/

/** A sentence about an address that ends in the path of the API; undefined for others. */
export function addressHint(baseUrl: string): string | undefined {
  const [ending] = API_PATH.exec(baseUrl) ?? []
  if (ending === undefined) return undefined
  return `The service address ends in ${ending}, but rushes adds /api/v1 itself. Use ${baseUrl.replace(API_PATH, '')}`
}

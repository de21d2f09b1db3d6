/** Error texts in the form of FastAPI, which many services and model servers are written with. */

/** Returns the text of `detail`: a text, or a list of problems, as `body.size: field required; …`. */
export function textOfDetail(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) return typeof detail === 'string' && detail.trim() !== '' ? detail : undefined
  const problems = detail.slice(0, MAX_PROBLEMS).flatMap((each: unknown) => {
    const { msg, loc } = (each ?? {}) as { readonly msg?: unknown; readonly loc?: unknown }
    if (typeof msg !== 'string') return []
    // An object cannot always be joined.
    const steps = Array.isArray(loc) ? loc.filter((step) => typeof step !== 'object') : []
    return [steps.length > 0 ? `${steps.join('.')}: ${msg}` : msg]
  })
  return problems.length === 0 ? undefined : problems.join('; ')
}

const MAX_PROBLEMS = 5

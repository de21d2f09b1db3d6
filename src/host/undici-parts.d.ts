/** Types for the files of undici that `undici.ts` imports by path; the types come from the package. */
declare module 'undici/lib/api/index.js' {
  const api: Readonly<Record<'connect' | 'pipeline' | 'request' | 'stream' | 'upgrade', unknown>>
  export default api
}

declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'

  export default errors
}

declare module 'undici/lib/core/symbols.js' {
  const symbols: { readonly kSocket: symbol; readonly kParser: symbol }
  export default symbols
}

declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici'

  export default Agent
}

declare module 'undici/lib/dispatcher/dispatcher.js' {
  import { Dispatcher } from 'undici'

  export default Dispatcher
}

declare module 'undici/lib/dispatcher/env-http-proxy-agent.js' {
  import { EnvHttpProxyAgent } from 'undici'

  export default EnvHttpProxyAgent
}

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici'

  export default Pool
}

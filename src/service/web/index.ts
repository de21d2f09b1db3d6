/**
 * The pages of the console, rendered by the service, and the authentication endpoints. A route reads the request, calls the
 * functions of the API or of the store, and renders a component of `src/console`. There is no second API: live parts are HTML.
 */
import type { FastifyInstance } from 'fastify'
import { KINDS } from '../../protocol/models.js'
import type { Engine } from '../engines/engine.js'
import type { FileStore } from '../files/contract.js'
import { readBodies } from '../http/request-body.js'
import { createPasswords, type Passwords } from '../rules/credentials.js'
import type { RateLimiter } from '../rules/rate.js'
import { Refusal } from '../rules/refusal.js'
import { addAccountRoutes } from './account.js'
import { addAssetRoutes } from './assets.js'
import { addAuthRoutes } from './auth.js'
import { addCreditsRoutes } from './credits.js'
import { addKeyRoutes } from './keys.js'
import { addNewRunRoutes } from './new-run.js'
import { addPictureRoutes, addRunRoutes } from './runs.js'
import { Sessions } from './sessions.js'
import { readVisitors, Site, type SiteOptions } from './site.js'
import { createThumbnails } from './thumbnails.js'

interface ConsoleOptions extends Omit<SiteOptions, 'sessions' | 'makeThumbnail'> {
  readonly rateLimiter: RateLimiter
  /** Default: scrypt. */
  readonly passwords?: Passwords | undefined
  /** Makes thumbnails. Undefined: there are none. */
  readonly thumbnailEngine: Engine | undefined
}

export async function addPages(app: FastifyInstance, options: ConsoleOptions): Promise<void> {
  const { thumbnailEngine: engine, passwords = createPasswords(), ...shared } = options
  const { store, files, clock, rateLimiter, onError } = options
  const sessions = new Sessions({ store, clock, passwords, rateLimiter, onError })
  const site = new Site({
    ...shared,
    sessions,
    makeThumbnail: engine && createThumbnails({ clock, files, engine, onError }),
    // Images first, as in the form.
    models: options.models.toSorted((one, other) => KINDS.indexOf(other.kind) - KINDS.indexOf(one.kind)),
  })
  let outputsOrigin: string | undefined
  await addAssetRoutes(app, options.assets)
  await app.register(async (scope) => {
    scope.setErrorHandler((error, request, reply) => site.error(error, request, reply))
    await readVisitors(scope, sessions, options.publicUrl)
    scope.addHook('onSend', async (_request, reply) => {
      // Signing takes 2 ms, and every page needs the origin.
      outputsOrigin ??= await outputsOriginOf(files)
      const policy = pagePolicy([options.publicUrl, outputsOrigin])
      // Not the policy of a stored file.
      if (!reply.hasHeader('content-security-policy')) reply.header('content-security-policy', policy)
      // Not `no-store`: Back must show a form as it was, with its hidden key.
      if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'private, no-cache')
      reply.header('x-content-type-options', 'nosniff')
    })
    readBodies(scope, options.bodyMemory)
    addAuthRoutes(scope, site)
    scope.get('/*', () => {
      throw new Refusal('not_found')
    })
    await scope.register(async (pages) => {
      pages.addHook('onRequest', async (request) => {
        // Every page needs a session.
        site.session(request)
      })
      addRunRoutes(pages, site)
      addPictureRoutes(pages, site)
      addNewRunRoutes(pages, site)
      addKeyRoutes(pages, site)
      addCreditsRoutes(pages, site)
      addAccountRoutes(pages, site)
    })
  })
}

/** The Content-Security-Policy of the pages. `urls` are sources of pictures and videos other than the service. */
function pagePolicy(urls: readonly (string | undefined)[]): string {
  const origins = urls.flatMap((url) => (url === undefined ? [] : new URL(url).origin))
  const media = ["'self'", 'data:', ...new Set(origins)].join(' ')
  return (
    `default-src 'none'; script-src 'self'; style-src 'self'; img-src ${media}; media-src ${media}; ` +
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
  )
}

/** Returns the origin that all outputs are redirected to; undefined if the service itself sends them. */
async function outputsOriginOf({ signedUrl }: FileStore): Promise<string | undefined> {
  // Without credentials, no output can be read, so the page does not need the origin.
  const url = await signedUrl?.('origin', 'image/png').catch(() => undefined)
  return url && new URL(url).origin
}

/**
 * The pages of the console, rendered by the service, and the authentication endpoints. A route reads the request, calls the
 * functions of the API or of the store, and renders a component of `src/console`. There is no second API: live parts are HTML.
 */
import type { FastifyInstance } from 'fastify'
import { readBodies } from '../http/request-body.js'
import { addAccountRoutes } from './account.js'
import { addAssetRoutes } from './assets.js'
import { addAuthRoutes } from './auth.js'
import { addCreditsRoutes } from './credits.js'
import { addKeyRoutes } from './keys.js'
import { addNewRunRoutes } from './new-run.js'
import { addPictureRoutes, addRunRoutes } from './runs.js'
import { readVisitors, Site, type SiteOptions } from './site.js'

export async function addPages(app: FastifyInstance, options: SiteOptions): Promise<void> {
  await addAssetRoutes(app, options.assets)
  await app.register(async (scope) => {
    const site = new Site(options)
    scope.setErrorHandler((error, request, reply) => site.error(error, request, reply))
    await readVisitors(scope, options.sessions, options.publicUrl)
    scope.addHook('onSend', async (_request, reply) => {
      const policy = pagePolicy([options.publicUrl, await options.outputsOrigin()])
      // Not the policy of a stored file.
      if (!reply.hasHeader('content-security-policy')) reply.header('content-security-policy', policy)
      // Not `no-store`: Back must show a form as it was, with its hidden key.
      if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'private, no-cache')
      reply.headers({
        'x-content-type-options': 'nosniff',
        // With `no-referrer`, browsers would send `Origin: null` with the forms.
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'permissions-policy':
          'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
      })
    })
    readBodies(scope, options.bodyMemory)
    addAuthRoutes(scope, site)
    await scope.register(async (pages) => {
      pages.addHook('onRequest', async (request, reply) => {
        // Every page needs a session.
        site.session(request)
        // Removes the empty fields that a form sends, so that each view has one short URL.
        const { pathname, search } = new URL(request.url, 'http://x')
        const short = search.replace(/(?<=[?&])[^=&]+=(&|$)/g, '').replace(/[?&]$/, '')
        if (short !== search) return site.redirect(reply, pathname + short)
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

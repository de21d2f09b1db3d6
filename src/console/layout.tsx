/** The frame around every page, and how pages become HTML. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'
import { Icon, type IconName } from './parts.js'

const PAGES: readonly { readonly path: string; readonly name: string; readonly icon: IconName }[] = [
  { path: '/runs', name: 'Runs', icon: 'runs' },
  { path: '/new', name: 'New run', icon: 'plus' },
  { path: '/keys', name: 'API keys', icon: 'key' },
  { path: '/credits', name: 'Credits', icon: 'credits' },
  { path: '/account', name: 'Account', icon: 'user' },
]

/** An error leaves a live part as it is, so that it asks again. No `eval`, and no style or script in the page. */
const HTMX =
  '{"noSwap":[204,304,"4xx","5xx"],"history":true,"prefix":"","includeIndicatorCSS":false,"allowEval":false}'

/** URLs of the files of the pages, by name. */
export type Assets = Readonly<Record<string, string>>

interface DocumentProps {
  readonly assets: Assets
  readonly title: string
  readonly children: ComponentChildren
}
const Document = ({ assets, title, children }: DocumentProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
      <meta name="color-scheme" content="light dark" />
      <meta name="htmx-config" content={HTMX} />
      <title>{`${title} · rushes`}</title>
      <link rel="icon" href={assets['icon.svg']} type="image/svg+xml" />
      <link rel="stylesheet" href={assets['console.css']} />
      <script defer src={assets['htmx.js']} />
      <script type="module" src={assets['console.js']} />
    </head>
    {children}
  </html>
)

interface PageProps extends DocumentProps {
  /** In place of the title as heading. */
  readonly heading?: ComponentChildren
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  /** The page of the navigation. */
  readonly path: string
}

export const Page = ({ assets, title, heading = title, about, actions, path, children }: PageProps) => (
  <Document assets={assets} title={title}>
    <body>
      <a class="skip button primary" href="#main">
        Skip to the page
      </a>
      <header class="sidebar">
        <a class="brand" href="/runs">
          <img src={assets['icon.svg']} width="24" height="24" alt="" />
          <span>rushes</span>
        </a>
        <nav aria-label="Pages">
          {PAGES.map(({ path: each, name, icon }) => (
            <a key={each} href={each} aria-current={each === path ? 'page' : undefined}>
              <Icon name={icon} size={18} />
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <div class="head">
          <div>
            <h1 class="wrap">{heading}</h1>
            {about && <p class="about">{about}</p>}
          </div>
          {actions && <div class="row">{actions}</div>}
        </div>
        <p id="announcement" role="status" class="hidden" />
        {children}
      </main>
    </body>
  </Document>
)

interface PlainPageProps extends DocumentProps {
  /** Narrow, for one form. */
  readonly about?: ComponentChildren
}
/** A page outside the frame: sign-in, and errors. */
export const PlainPage = ({ assets, title, about, children }: PlainPageProps) => (
  <Document assets={assets} title={title}>
    <body class="plain-page">
      <main id="main" class="stack">
        <img src={assets['icon.svg']} width="40" height="40" alt="" />
        <div>
          <h1>{title}</h1>
          {about && <p class="about wrap">{about}</p>}
        </div>
        {children}
      </main>
    </body>
  </Document>
)

type Component<Props> = (props: Props) => ComponentChildren

/** A whole page. */
export function renderPage<Props>(page: Component<Props>, props: Props): string {
  return `<!doctype html>${renderPart(page, props)}`
}

/** A part of a page. */
export function renderPart<Props>(part: Component<Props>, props: Props): string {
  return renderToString(part(props) as VNode)
}

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export interface CenteredProps {
  readonly title?: string
  readonly children?: ComponentChildren
}

/** Page without navigation, for sign-in. If the focused element is removed, the title gets the focus. */
export function Centered({ title, children }: CenteredProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (document.activeElement === null || document.activeElement === document.body) heading.current?.focus()
  })
  useEffect(() => {
    document.title = title === undefined ? 'rushes' : `${title} · rushes`
  }, [title])
  return (
    <main class="centered">
      <Brand />
      {children !== undefined && (
        <div class="centered-card">
          {title !== undefined && (
            <h1 ref={heading} tabIndex={-1}>
              {title}
            </h1>
          )}
          {children}
        </div>
      )}
    </main>
  )
}

/** Logo and name. */
export function Brand() {
  return (
    <span class="brand">
      <svg class="brand-mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false">
        <rect width="32" height="32" rx="8" />
        <path class="brand-far" d="M10 8.500v15M16 8.500v15M22 8.500v15" />
        <path d="M10 17v6.500M16 11.500v12M22 14.500v9" />
      </svg>
      <span class="brand-name">rushes</span>
    </span>
  )
}

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** Whether a field may take the focus by itself. On a phone, the keyboard would cover the page. */
export const canAutofocus = (): boolean => !matchMedia('(pointer: coarse), (width < 640px)').matches

export interface PageProps {
  readonly title: string
  readonly children: ComponentChildren
  /** One sentence below the title. */
  readonly about?: ComponentChildren
  /** Buttons next to the title. */
  readonly actions?: ComponentChildren
  /** Shown above the title, for example a back link. */
  readonly above?: ComponentChildren
}

/** A page of the console. Its title gets the focus when the page opens, so that screen readers announce it. */
export function Page({ title, children, about, actions, above }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // Do not take the focus from a field of the page.
    if (document.activeElement === null || document.activeElement === document.body)
      heading.current?.focus({ preventScroll: true })
  }, [])
  useEffect(() => {
    document.title = `${title} · rushes`
  }, [title])
  return (
    <div class="page">
      {above}
      <header class="page-header">
        <div>
          <h1 ref={heading} tabIndex={-1} dir="auto">
            {title}
          </h1>
          {about !== undefined && <p class="page-about">{about}</p>}
        </div>
        {actions !== undefined && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export interface CardProps {
  readonly title?: string
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children?: ComponentChildren
  /** Removes the padding. Used for tables. */
  readonly isFlush?: boolean
}

export function Card({ title, about, actions, children, isFlush = false }: CardProps) {
  return (
    <section class={isFlush ? 'card card-flush' : 'card'}>
      {(title !== undefined || actions !== undefined) && (
        <header class="card-header">
          <div>
            {title !== undefined && <h2>{title}</h2>}
            {about !== undefined && <p class="card-about">{about}</p>}
          </div>
          {actions !== undefined && <div class="card-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

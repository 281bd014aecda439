//! A network between clients and a server that loses what is sent on the connections it has.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Forwards connections to a server, until it ends with the Tokio runtime.
pub(crate) struct Proxy {
    address: SocketAddr,
    path: watch::Sender<Path>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Open,
    /// Connections can be opened, but nothing arrives on them, nor ever will.
    Dark,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let path = watch::Sender::new(Path::Open);
        let state = path.subscribe();
        tokio::task::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::task::spawn(forward(client, server, state.clone()));
            }
        });
        Self { address, path }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// From now on nothing arrives any more, and no connection says so.
    pub(crate) fn darken(&self) {
        self.path.send_replace(Path::Dark);
    }

    /// New connections are forwarded again; those of before stay dark.
    pub(crate) fn brighten(&self) {
        self.path.send_replace(Path::Open);
    }
}

async fn forward(mut client: TcpStream, server: u16, mut path: watch::Receiver<Path>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    if *path.borrow_and_update() == Path::Open {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = path.changed() => {}
        }
    }
    // Both ends stay open.
    std::future::pending::<()>().await;
}
